import {
  age,
  ask,
  byId,
  CopyButton,
  element,
  fetchStreams,
  find,
  media,
  ownPath,
  playerPath,
  serverNow,
  showAddresses,
  watching,
} from './common.js';
import { LlhlsPlayer } from './llhls.js';
import { AWAY, Panel, UNREACHABLE } from './panel.js';
import { beginAt } from './rewinder.js';
import { ShareDialog } from './share.js';
import { WhepPlayer } from './whep.js';

/** @import { LiveStream } from './answers.ts' */
/** @import { Notes, State } from './panel.js' */

/**
 * `unlisted`: the server does not list names, so nothing is known of the stream.
 * @typedef {LiveStream & { unlisted?: boolean }} Live
 * @typedef {'llhls' | 'webrtc'} Way
 */

const LIVE_POLL_MS = 2000;
const WAITING_POLL_MS = [1000, 1000, 1000, 2000, 2000, 3000];
const HIDDEN_POLL_MS = 10_000;
/** @type {readonly Way[]} */
const WAYS = ['llhls', 'webrtc'];

const [app = '', stream = ''] = ownPath();
const base = playerPath(app, stream);
/** Other parameters of the page's address, which belong to the stream's own addresses: policies, signatures. */
const passed = new URLSearchParams(location.search);
let mode = passed.get('mode');
passed.delete('mode');
/** Whether the page is in a frame of another site: only the player is shown. */
const isEmbedded = passed.has('embed');
passed.delete('embed');
passed.delete('direction');

const looks = { mark: find(HTMLLinkElement, 'link[rel=icon]').href, name: `${app}/${stream}` };
/** By WebRTC the first frame is the next key frame, which some encoders send rarely. */
const FIRST_FRAME_MS = { llhls: 15_000, webrtc: 30_000 };
/** A publisher that has gone may return to its stream within this time. */
const RETURN_MS = 30_000;
/** Time that the stream of a lost node may take to come to another one. */
const MOVE_MS = 5000;

/** Whether viewers can rewind in LL-HLS; undefined where the server does not list the stream. */
function canRewind() {
  if (passed.get('_HLS_rewind') === 'NO') return false;
  return live?.unlisted ? undefined : live?.rewinds === true;
}

/** Subtitles of WebRTC; undefined where the server does not list the stream. */
const subtitles = () => (live?.unlisted ? undefined : (live?.subtitles ?? []));

const heard = {
  /** @param {Panel} loud */
  unmuted: (loud) => Object.values(panels).forEach((panel) => panel !== loud && panel.mute()),
  begun: () => renderAbout(),
  troubled: () => loop(),
};
/** @type {Readonly<Record<Way, Panel>>} */
const panels = {
  llhls: new Panel(
    'LL-HLS',
    looks,
    (video, { failed, changed }) => new LlhlsPlayer(video, failed, changed, canRewind),
    { ...heard, firstFrameMs: FIRST_FRAME_MS.llhls },
  ),
  webrtc: new Panel('WebRTC', looks, (video, events) => new WhepPlayer(video, events, subtitles()), {
    ...heard,
    firstFrameMs: FIRST_FRAME_MS.webrtc,
  }),
};

/**
 * The stream as the server lists it; undefined while it is not live.
 * @type {Live | undefined}
 */
let live;
let everLive = false;
/** Whether it is not live, and its publisher may return to it. */
let interrupted = false;
/** When it was live last, by the monotonic clock. */
let liveAt = 0;
/**
 * When it began, as its owner reported last.
 * @type {number | undefined}
 */
let since;
/** @type {string | undefined} */
let masterUrl;
let refused = 0;
/**
 * Streams that the panels play, so that only a change starts them again.
 * @type {Partial<Record<Way, string>>}
 */
const running = {};

const query = () => (passed.size > 0 ? `?${passed}` : '');

/** @param {Live} live */
function llhlsUrl({ llhls: [file = ''] }) {
  return `${base}/${encodeURIComponent(file)}${query()}`;
}

/** @param {Live} live */
function whepUrl({ webrtc: [name = ''] }) {
  const playlist = name === 'webrtc_default' ? '' : `/${encodeURIComponent(name)}`;
  const parameters = new URLSearchParams(passed);
  parameters.set('direction', 'whep');
  return `${base}${playlist}?${parameters}`;
}

/** How far the button goes back that is shown with WebRTC, which cannot be rewound itself. */
const REWIND_MS = 10_000;
const rewind = element('button', { type: 'button', className: 'button', textContent: 'Rewind', hidden: true });

/** Ways that are shown: those of the viewer, else LL-HLS, which has audio whatever the codec. */
function shownWays() {
  const offered = WAYS.filter((way) => live === undefined || live[way].length > 0);
  if (mode === 'both') return offered;
  const wanted = offered.filter((way) => way === mode);
  return wanted.length > 0 ? wanted : offered.slice(0, 1);
}

/**
 * @param {Live} live
 * @param {Way} way
 * @returns {Notes}
 */
function notes(live, way) {
  const codecs = live.audio?.codecs ?? [];
  const silent = way === 'webrtc' && codecs.length > 0 && !codecs.includes('OPUS');
  return {
    hasAudio: !silent && (codecs.length > 0 || live.unlisted === true),
    isAudio: live.video === undefined && live.unlisted !== true,
    note: silent ? `No audio over WebRTC: it needs Opus, this stream has ${codecs.join(', ')}.` : '',
  };
}

function render() {
  const ways = shownWays();
  for (const way of WAYS) {
    const shown = ways.includes(way);
    panels[way].excuse = excuse();
    // a player that runs is left alone, also when the list cannot be fetched
    if (shown && live !== undefined) {
      const url = way === 'llhls' ? llhlsUrl(live) : whepUrl(live);
      const about = notes(live, way);
      const labels = way === 'webrtc' ? live.subtitles?.map(({ label }) => label) : undefined;
      const wanted = [live.since, url, live.video?.codec, about.hasAudio, ...(labels ?? [])].join(' ');
      if (running[way] !== wanted) panels[way].play(url, about);
      running[way] = wanted;
    } else {
      delete running[way];
      panels[way].stop(...absence());
    }
  }
  const present = [...byId('panels').children];
  const wanted = ways.map((way) => panels[way].element);
  if (present.length !== wanted.length || present.some((child, at) => child !== wanted[at])) {
    byId('panels').replaceChildren(...wanted);
  }
  byId('panels').classList.toggle('two', wanted.length > 1);
  find(HTMLElement, 'main').classList.toggle('one', wanted.length < 2);
  renderModes(ways);
  renderAbout();
  renderLinks();
}

/** Reason why nothing plays, where the page knows it. */
function excuse() {
  if (refused > 0) return UNREACHABLE;
  return live?.relayed === true ? AWAY : undefined;
}

/** @returns {State} */
function absence() {
  if (live !== undefined && shownWays().length === 0) {
    return ['Not for browsers', 'LL-HLS and WebRTC are off for this stream.', false];
  }
  if (refused > 0) return UNREACHABLE;
  if (interrupted) return AWAY;
  return everLive
    ? ['The stream has ended', 'If it comes back, it plays here by itself.', true]
    : ['Not live yet', 'It starts here by itself.', true];
}

/** @param {readonly Way[]} ways */
function renderModes(ways) {
  for (const input of byId('modes').querySelectorAll('input')) {
    const { value } = input;
    const needed = WAYS.filter((way) => value === 'both' || value === way);
    input.disabled = needed.some((way) => live?.[way].length === 0);
    input.checked = ways.length > 1 ? value === 'both' : value === ways[0];
  }
  rewind.hidden = ways.includes('llhls') || !canRewind();
}

/** @param {string} wanted */
function choose(wanted) {
  mode = wanted;
  const url = new URL(location.href);
  url.searchParams.set('mode', mode);
  history.replaceState(null, '', url);
  render();
}

function renderAbout() {
  const parts = [app];
  const own = Object.values(panels).filter(({ playing }) => playing).length;
  const known = refused === 0 || own > 0 ? live : undefined;
  if (known && !known.unlisted) {
    parts.push(media(known), watching(Math.max(known.viewers, own)), `live for ${age(serverNow() - known.since)}`);
  }
  const text = parts.filter(Boolean).join(' · ');
  if (byId('about').textContent !== text) byId('about').textContent = text;
  document.title = `${known ? '● ' : ''}${stream} · Kiln`;
}

function renderLinks() {
  /** @type {[name: string, url: string][]} */
  const rows = [];
  if (live && live.llhls.length > 0) rows.push(['LL-HLS', new URL(llhlsUrl(live), location.href).href]);
  if (live && live.webrtc.length > 0) {
    rows.push(['WHEP', new URL(whepUrl(live), location.href).href]);
    const socket = new URL(`${base}${query()}`, location.href);
    socket.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
    rows.push(['OvenPlayer', socket.href]);
  }
  byId('links').hidden = rows.length === 0;
  showAddresses(byId('urls'), rows);
}

function addTools() {
  const here = () => new URL(`${base}${query()}`, location.href).href;
  const dialog = new ShareDialog(here, stream);
  const share = element('button', { type: 'button', className: 'button', textContent: 'Share' });
  share.addEventListener('click', () => dialog.open());
  byId('tools').append(rewind, new CopyButton(here, 'Copy link').element, share);
  document.body.append(dialog.element);
}

/**
 * Stands for a stream whose name is not listed: its usual addresses are tried.
 * @type {Live}
 */
const UNLISTED = {
  app,
  stream,
  unlisted: true,
  since: 0,
  viewers: 0,
  llhls: ['llhls.m3u8'],
  webrtc: ['webrtc_default'],
};

/** Numbers of the newest request and of the newest answer: an older answer is ignored. */
let asked = 0;
let answered = 0;

async function poll() {
  const own = ++asked;
  try {
    const { streams, restricted } = await fetchStreams({ app, stream });
    if (own < answered) return;
    answered = own;
    live = restricted ? UNLISTED : streams[0];
    refused = 0;
    if (live !== undefined) {
      // while no node owns it, a relay does not know when it began
      if (live.relayed) live = { ...live, since: since ?? live.since };
      since = live.since;
      everLive = true;
      liveAt = performance.now();
      masterUrl = live.llhls.length > 0 ? llhlsUrl(live) : undefined;
    }
    interrupted = live === undefined && (await mayReturn());
  } catch (error) {
    // a server that answers with an error is there
    if (!(error instanceof TypeError) && !isTimeout(error)) return;
    if (own < answered) return;
    answered = own;
    refused++;
  }
  render();
}

/**
 * Whether the publisher may return. All nodes keep the playlist of a stream for exactly that long. Without a playlist, a
 * stream is not over while it may be on its way to another node.
 */
async function mayReturn() {
  const gone = performance.now() - liveAt;
  if (!everLive || gone > RETURN_MS + LIVE_POLL_MS) return false;
  if (masterUrl === undefined) return gone < MOVE_MS;
  try {
    const { status } = await ask(masterUrl, { method: 'HEAD' });
    return status !== 404;
  } catch (error) {
    // a server that has just listed the streams does not answer: it waits for the stream
    if (isTimeout(error)) return true;
    throw error;
  }
}

/** @param {unknown} error */
const isTimeout = (error) => error instanceof Error && error.name === 'TimeoutError';

/** @type {number | undefined} */
let timer;
let waited = 0;
async function loop() {
  clearTimeout(timer);
  await poll();
  waited = live === undefined ? waited + 1 : 0;
  const waiting = WAITING_POLL_MS[Math.min(waited, WAITING_POLL_MS.length - 1)];
  clearTimeout(timer);
  timer = setTimeout(loop, document.hidden ? HIDDEN_POLL_MS : live === undefined ? waiting : LIVE_POLL_MS);
}

byId('name').textContent = stream;
document.body.classList.toggle('embedded', isEmbedded);
addTools();
byId('modes').addEventListener('change', ({ target }) => {
  if (target instanceof HTMLInputElement) choose(target.value);
});
rewind.addEventListener('click', () => {
  beginAt(serverNow() - REWIND_MS);
  choose('llhls');
});
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void loop();
});
setInterval(() => {
  Object.values(panels).forEach((panel) => panel.tick());
  if (refused > 0) render();
}, 1000);
render();
void loop();
