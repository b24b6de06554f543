// Shows the screen of the server that the page's address names: ?path=[PATH]?token=TOKEN
import RFB from './novnc/core/rfb.js';
import { type } from './typing.js';

const element = (id) => document.getElementById(id);
const status = element('status');
const show = (text) => { status.textContent = `noVNC: ${text}`; };

const path = new URLSearchParams(location.search).get('path');
// The token works once: it has no place in the history.
history.replaceState(null, '', location.pathname);

if (!path) {
    show('this address has no token; ask for a new console');
} else {
    const url = new URL(path.startsWith('/') ? path : `/${path}`, location.origin);
    url.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
    const rfb = new RFB(element('screen'), url.href, { wsProtocols: ['binary'] });
    rfb.scaleViewport = true;
    rfb.addEventListener('connect', () => {
        show('connected');
        element('tools').hidden = false;
        rfb.focus();
    });
    element('ctrl-alt-del').addEventListener('click', () => {
        rfb.sendCtrlAltDel();
        rfb.focus();
    });
    element('full').addEventListener('click', async () => {
        try {
            if (document.fullscreenElement) await document.exitFullscreen();
            else await document.documentElement.requestFullscreen();
        } catch {
            show('this page may not fill the screen');
        }
        rfb.focus();
    });
    element('full').hidden = !document.fullscreenEnabled;
    element('paste').addEventListener('click', () => { element('pasting').showModal(); });
    element('pasting').addEventListener('close', async () => {
        const text = element('text').value;
        element('text').value = '';
        rfb.focus();
        if (element('pasting').returnValue === 'type') await type(rfb, text);
        element('pasting').returnValue = '';
    });
    rfb.addEventListener('desktopname', (event) => { document.title = event.detail.name; });
    rfb.addEventListener('disconnect', (event) => {
        element('tools').hidden = true;
        show(event.detail.clean
            ? 'disconnected'
            : 'the console could not be opened, or it broke; ask for a new one');
    });
}
