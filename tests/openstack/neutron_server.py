# SPDX-License-Identifier: LGPL-2.1-or-later
"""neutron-server as a whole, on SQLite: neutron_server.py --tables URL, which neutron-db-manage cannot do there; neutron_server.py --config-file FILE

SQLite says "locked" where MariaDB sees a deadlock, upon which Neutron tries again.
"""

import sys

if sys.argv[1] == '--tables':
    import sqlalchemy
    from neutron.db.migration.models import head
    head.get_metadata().create_all(sqlalchemy.create_engine(sys.argv[2]))
    sys.exit()

from neutron.cmd.eventlet import server
from oslo_db.sqlalchemy import exc_filters
import sqlalchemy.exc

exc_filters.filters('sqlite', sqlalchemy.exc.OperationalError, '.*database is locked')(exc_filters._deadlock_error)
server.main()
