#!/bin/sh
# Put the database's password where libpq looks for it, readable by this user alone, then run the
# command. Not into the environment: it is shown by `docker inspect` and inherited by every process.
set -eu
if [ -n "${DATABASE_PASSWORD_FILE:-}" ]; then
    umask 077
    # Backslash and colon are special in that file.
    printf '*:*:*:*:%s\n' "$(sed 's/[\\:]/\\&/g' "$DATABASE_PASSWORD_FILE")" > "$HOME/.pgpass"
fi
exec "$@"
