"""The data of images: uploads, downloads, the spool, and what their formats are."""
