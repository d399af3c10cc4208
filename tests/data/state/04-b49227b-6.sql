-- State of b49227b, kept by tools/keep-state
CREATE TABLE attachments (claim TEXT PRIMARY KEY REFERENCES claims ON DELETE CASCADE, guest TEXT, granted INTEGER NOT NULL, updated INTEGER NOT NULL) STRICT;
CREATE TABLE claims (id TEXT PRIMARY KEY, domain TEXT NOT NULL, domain_name TEXT NOT NULL, name TEXT NOT NULL, fabric TEXT NOT NULL, way TEXT NOT NULL, bdf TEXT NOT NULL UNIQUE, guid INTEGER NOT NULL UNIQUE, epoch INTEGER NOT NULL, pkeys TEXT NOT NULL, ending INTEGER NOT NULL, created INTEGER NOT NULL, migration TEXT, leaving INTEGER NOT NULL DEFAULT 0, away INTEGER NOT NULL DEFAULT 0, UNIQUE (domain, name)) STRICT;
CREATE TABLE intents (bdf TEXT PRIMARY KEY, effect TEXT NOT NULL, started INTEGER NOT NULL) STRICT;
CREATE TABLE migrations (id TEXT PRIMARY KEY, role TEXT NOT NULL, domain TEXT NOT NULL, domain_name TEXT NOT NULL, peer TEXT NOT NULL, state TEXT NOT NULL, handed INTEGER NOT NULL, pinned INTEGER NOT NULL, started INTEGER NOT NULL, updated INTEGER NOT NULL, code TEXT NOT NULL, reason TEXT NOT NULL, steps TEXT NOT NULL) STRICT;
INSERT INTO "migrations" VALUES('e346301d-19c1-4691-b275-304df1178fbd','destination','d0000000-0000-0000-0000-000000000000','vm0','host0','ended',0,0,1795571115188,1795571115194,'no_free_vf','VF ib0: no free VF for fabric default: 0 of its 0 VFs are free: Device or resource busy','0:4');
CREATE TABLE outbox ( vguid INTEGER PRIMARY KEY, seq INTEGER NOT NULL UNIQUE, created_ms INTEGER NOT NULL, epoch INTEGER NOT NULL, bound INTEGER NOT NULL CHECK (bound IN (0, 1)), port_guid INTEGER NOT NULL, gid_index INTEGER NOT NULL, lid INTEGER NOT NULL, pkeys TEXT NOT NULL, moved INTEGER NOT NULL DEFAULT 0 CHECK (moved IN (0, 1)), move_id TEXT NOT NULL DEFAULT '', from_port_guid INTEGER NOT NULL DEFAULT 0, from_gid_index INTEGER NOT NULL DEFAULT 0, from_lid INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE outbox_members ( port_guid INTEGER PRIMARY KEY, seq INTEGER NOT NULL UNIQUE, created_ms INTEGER NOT NULL, pkeys TEXT NOT NULL) STRICT;
CREATE TABLE suppressed (domain TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (domain, name)) STRICT;
CREATE TABLE vfs (bdf TEXT PRIMARY KEY, state TEXT NOT NULL, since INTEGER NOT NULL, claim TEXT, reason TEXT NOT NULL, boot_id TEXT NOT NULL, pf TEXT NOT NULL, idx INTEGER NOT NULL) STRICT;
INSERT INTO "vfs" VALUES('0000:01:00.1','unmanaged',1795571115114,NULL,'its HCA is no longer managed (configuration)','boot-1','0000:01:00.0',0);
INSERT INTO "vfs" VALUES('0000:01:00.2','unmanaged',1795571115114,NULL,'its HCA is no longer managed (configuration)','boot-1','0000:01:00.0',1);
INSERT INTO "vfs" VALUES('0000:01:00.3','unmanaged',1795571115114,NULL,'its HCA is no longer managed (configuration)','boot-1','0000:01:00.0',2);
INSERT INTO "vfs" VALUES('0000:01:00.4','unmanaged',1795571115114,NULL,'its HCA is no longer managed (configuration)','boot-1','0000:01:00.0',3);
CREATE TABLE vguids (guid INTEGER PRIMARY KEY, epoch INTEGER NOT NULL) STRICT;
PRAGMA user_version = 4;
