"""Resources that are micronova's own, most of them for administrators."""
