import { byId, element, find, messageOf } from '../common.js';
import { Api, ApiError, NoAnswerError } from './api.js';
import { applicationsView } from './applications.js';
import { channelsView } from './channels.js';
import { eventsView } from './events.js';
import { LinkDialog } from './link.js';
import { nodesView } from './nodes.js';
import { overviewView } from './overview.js';
import { recordingsView } from './recordings.js';
import { streamView } from './stream.js';
import { streamsView } from './streams.js';
import { tasksView } from './tasks.js';

const REFRESH_MS = 3000;
const HIDDEN_REFRESH_MS = 30_000;

/** @import { View } from './parts.js' */

/**
 * Views by the first part of the address.
 * @typedef {{ title: string, make: (api: Api, parts: readonly string[]) => View }} Place
 */
const OVERVIEW = { title: 'Overview', make: overviewView };
/** @type {Readonly<Record<string, Place>>} */
const VIEWS = {
  '': OVERVIEW,
  streams: {
    title: 'Streams',
    make: (api, [vhost, app, stream, ...more]) =>
      vhost === undefined || app === undefined || stream === undefined || more.length > 0
        ? streamsView(api)
        : streamView(api, { vhost, app, stream }),
  },
  channels: { title: 'Channels', make: channelsView },
  tasks: { title: 'Recordings and pushes', make: tasksView },
  recorded: { title: 'Recorded files', make: recordingsView },
  applications: { title: 'Applications', make: applicationsView },
  nodes: { title: 'Nodes', make: nodesView },
  events: { title: 'Events', make: eventsView },
};

/** @type {Api | undefined} */
let api;
/** @type {View | undefined} */
let view;
/** Views that have shown an answer. @type {WeakSet<View>} */
const filled = new WeakSet();
/** @type {number | undefined} */
let timer;

for (const [path, { title }] of Object.entries(VIEWS)) byId('nav').append(element('a', { href: `#/${path}` }, title));

function where() {
  const [first = '', ...parts] = location.hash.replace(/^#\/?/, '').split('/').map(decode);
  return { first: Object.hasOwn(VIEWS, first) ? first : '', parts };
}

/** @param {string} part */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * Shows the view of the address.
 * @param {{ focus: boolean }} options
 */
function open({ focus }) {
  if (api === undefined) return;
  const { first, parts } = where();
  const { title, make } = VIEWS[first] ?? OVERVIEW;
  document.title = `${title} · Kiln console`;
  for (const link of byId('nav').querySelectorAll('a')) {
    if (link.hash === `#/${first}`) {
      link.ariaCurrent = 'page';
      link.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    } else link.removeAttribute('aria-current');
  }
  view = make(api, parts);
  byId('view').replaceChildren(view.element);
  if (focus) byId('main').focus();
  void loop();
}

async function loop() {
  clearTimeout(timer);
  const shown = view;
  if (shown === undefined || api === undefined) return;
  try {
    api.isStale = false;
    await shown.refresh();
    filled.add(shown);
    if (shown === view)
      trouble(api.isStale ? 'Not every node answered: what is shown may be incomplete or old.' : undefined);
  } catch (error) {
    if (shown !== view || api === undefined) return;
    trouble(`${wrong(error)}.${filled.has(shown) ? ' What is shown is how it was last.' : ''}`);
  }
  if (shown !== view) return;
  clearTimeout(timer);
  timer = setTimeout(loop, document.hidden ? HIDDEN_REFRESH_MS : REFRESH_MS);
}

/**
 * Reason why a view could not be refreshed, for the user.
 * @param {unknown} error
 */
function wrong(error) {
  if (error instanceof ApiError || error instanceof NoAnswerError) return error.message;
  reportError(error);
  return `This page has a fault: ${messageOf(error)}`;
}

/** @param {string | undefined} text */
function trouble(text) {
  byId('trouble').hidden = text === undefined;
  if (text !== undefined && byId('trouble').textContent !== text) byId('trouble').textContent = text;
}

/**
 * Forgets the token and asks for one.
 * @param {string} [why]
 */
function leave(why) {
  api = undefined;
  view = undefined;
  clearTimeout(timer);
  trouble(undefined);
  byId('view').replaceChildren();
  byId('nav').hidden = true;
  byId('leave').hidden = true;
  byId('share').hidden = true;
  byId('read-only').hidden = true;
  byId('sign-in').hidden = false;
  byId('wrong').hidden = why === undefined;
  byId('wrong').textContent = why ?? '';
  byId('token').focus();
}

/**
 * Signs in with a token, or with the credential of a read-only link.
 * @param {string} credential
 */
async function enter(credential) {
  const offered = new Api(credential);
  try {
    await offered.get('/v1/version');
  } catch (error) {
    leave(messageOf(error));
    return;
  }
  api = offered;
  api.onRefused = (message) => leave(message);
  byId('sign-in').hidden = true;
  byId('nav').hidden = false;
  byId('leave').hidden = false;
  byId('share').hidden = api.isReadOnly;
  byId('read-only').hidden = !api.isReadOnly;
  byId('read-only').textContent = api.expires === undefined ? '' : `Read-only until ${api.expires.toLocaleString()}`;
  open({ focus: true });
}

/** Takes the credential of a read-only link out of the address, where it would stay to be seen and kept. */
function takeLink() {
  const credential = /^#link=(.*)$/.exec(location.hash)?.[1];
  if (credential === undefined) return false;
  history.replaceState(null, '', `${location.pathname}#/`);
  void enter(decode(credential));
  return true;
}

byId('sign-in').addEventListener('submit', (event) => {
  event.preventDefault();
  const token = find(HTMLInputElement, '#token');
  const credential = token.value;
  token.value = '';
  void enter(credential);
});
byId('share').addEventListener('click', () => api && new LinkDialog(api).open());
byId('leave').addEventListener('click', () => leave());
addEventListener('hashchange', () => takeLink() || open({ focus: true }));
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void loop();
});
leave();
takeLink();
