/* Stands for a vendor's library: there when the plugin is linked, gone when it is loaded. */
int tessera_absent_vendor(void);
int tessera_absent_vendor(void) { return 0; }
