// Shows the screen of the server that the page's address names: ?path=[PATH]?token=TOKEN
import RFB from './novnc/core/rfb.js';

const status = document.getElementById('status');
const show = (text) => { status.textContent = `noVNC: ${text}`; };

const path = new URLSearchParams(location.search).get('path');
// The token works once: it has no place in the history.
history.replaceState(null, '', location.pathname);

if (!path) {
    show('this address has no token; ask for a new console');
} else {
    const url = new URL(path.startsWith('/') ? path : `/${path}`, location.origin);
    url.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
    const rfb = new RFB(document.getElementById('screen'), url.href, { wsProtocols: ['binary'] });
    rfb.scaleViewport = true;
    rfb.addEventListener('connect', () => {
        show('connected');
        rfb.focus();
    });
    rfb.addEventListener('desktopname', (event) => { document.title = event.detail.name; });
    rfb.addEventListener('disconnect', (event) => {
        show(event.detail.clean
            ? 'disconnected'
            : 'the console could not be opened, or it broke; ask for a new one');
    });
}
