"""The cloud database: schema, engines, migrations and read-side queries."""
