import {
  age,
  ask,
  CopyButton,
  element,
  fetchStreams,
  media,
  ownPath,
  playerPath,
  serverNow,
  showAddresses,
  watching,
} from './common.js';
import { LlhlsPlayer } from './llhls.js';
import { AWAY, Panel, UNREACHABLE } from './panel.js';
import { ShareDialog } from './share.js';
import { WhepPlayer } from './whep.js';

const LIVE_POLL_MS = 2000;
const WAITING_POLL_MS = [1000, 1000, 1000, 2000, 2000, 3000];
const HIDDEN_POLL_MS = 10_000;
const WAYS = ['llhls', 'webrtc'];

const byId = (id) => document.getElementById(id);
const [app, stream] = ownPath();
const base = playerPath(app, stream);
/** What the page's address says beyond the mode belongs to the stream's own addresses: policies, signatures. */
const passed = new URLSearchParams(location.search);
let mode = passed.get('mode');
passed.delete('mode');
/** The page is in a frame of another site: nothing is shown but what plays. */
const isEmbedded = passed.has('embed');
passed.delete('embed');
passed.delete('direction');

/** The mark that is shown while nothing plays, and what is drawn of a stream by its name. */
const looks = { mark: document.querySelector('link[rel=icon]').href, name: `${app}/${stream}` };
/** By WebRTC the first picture is the next key frame, which some encoders send rarely. */
const FIRST_PICTURE_MS = { llhls: 15_000, webrtc: 30_000 };
/** So long a publisher that has gone may return to its stream. */
const RETURN_MS = 30_000;
/** So long the stream of a node that has gone may take to come to another one. */
const MOVE_MS = 5000;

const heard = {
  unmuted: (loud) => Object.values(panels).forEach((panel) => panel !== loud && panel.mute()),
  begun: () => renderAbout(),
  troubled: () => loop(),
};
const panels = {
  llhls: new Panel('LL-HLS', looks, (video, { failed, changed }) => new LlhlsPlayer(video, failed, changed), {
    ...heard,
    firstPictureMs: FIRST_PICTURE_MS.llhls,
  }),
  webrtc: new Panel('WebRTC', looks, (video, { failed, interrupted }) => new WhepPlayer(video, failed, interrupted), {
    ...heard,
    firstPictureMs: FIRST_PICTURE_MS.webrtc,
  }),
};

/** The stream as the server lists it; undefined while it is not live. */
let live;
let everLive = false;
/** It is not live, and its publisher may return to it. */
let interrupted = false;
/** When it was live last, by the monotonic clock. */
let liveAt = 0;
/** When it began, as the node that had it told last. */
let since;
/** The master playlist it had. */
let masterUrl;
let refused = 0;
/** What each panel plays, so that only a change starts it again. */
const running = {};

const query = () => (passed.size > 0 ? `?${passed}` : '');

function llhlsUrl() {
  return `${base}/${encodeURIComponent(live.llhls[0])}${query()}`;
}

function whepUrl() {
  const playlist = live.webrtc[0] === 'webrtc_default' ? '' : `/${encodeURIComponent(live.webrtc[0])}`;
  const parameters = new URLSearchParams(passed);
  parameters.set('direction', 'whep');
  return `${base}${playlist}?${parameters}`;
}

/** The way that is shown: the viewer's, else LL-HLS, which has audio whatever the codec. */
function shownWays() {
  const offered = WAYS.filter((way) => live === undefined || live[way].length > 0);
  if (mode === 'both') return offered;
  if (offered.includes(mode)) return [mode];
  return offered.slice(0, 1);
}

function notes(way) {
  const codecs = live.audio?.codecs ?? [];
  const silent = way === 'webrtc' && codecs.length > 0 && !codecs.includes('OPUS');
  return {
    hasSound: !silent && (codecs.length > 0 || live.unlisted === true),
    isAudio: live.video === undefined && live.unlisted !== true,
    note: silent ? `No audio over WebRTC: it needs Opus, this stream has ${codecs.join(', ')}.` : '',
  };
}

function render() {
  const ways = shownWays();
  for (const way of WAYS) {
    const shown = ways.includes(way);
    panels[way].excuse = excuse();
    // what plays, or tries to, is left alone, also when the list cannot be asked for
    if (shown && live !== undefined) {
      const url = way === 'llhls' ? llhlsUrl() : whepUrl();
      const about = notes(way);
      const wanted = [live.since, url, live.video?.codec, about.hasSound].join(' ');
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
  document.querySelector('main').classList.toggle('one', wanted.length < 2);
  renderModes(ways);
  renderAbout();
  renderLinks();
}

/** Why what does not play may not. */
function excuse() {
  if (refused > 0) return UNREACHABLE;
  return live?.relayed === true ? AWAY : undefined;
}

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

function renderModes(ways) {
  for (const input of byId('modes').elements) {
    const { value } = input;
    const needed = value === 'both' ? WAYS : [value];
    input.disabled = live !== undefined && needed.some((way) => live[way].length === 0);
    input.checked = ways.length > 1 ? value === 'both' : value === ways[0];
  }
}

function renderAbout() {
  const parts = [app];
  const own = Object.values(panels).filter(({ playing }) => playing).length;
  const known = live !== undefined && (refused === 0 || own > 0);
  if (known && !live.unlisted) {
    parts.push(media(live), watching(Math.max(live.viewers, own)), `live for ${age(serverNow() - live.since)}`);
  }
  const text = parts.filter(Boolean).join(' · ');
  if (byId('about').textContent !== text) byId('about').textContent = text;
  document.title = `${known ? '● ' : ''}${stream} · Kiln`;
}

function renderLinks() {
  const rows = [];
  if (live?.llhls.length > 0) rows.push(['LL-HLS', new URL(llhlsUrl(), location).href]);
  if (live?.webrtc.length > 0) {
    rows.push(['WHEP', new URL(whepUrl(), location).href]);
    const socket = new URL(`${base}${query()}`, location);
    socket.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
    rows.push(['OvenPlayer', socket.href]);
  }
  byId('links').hidden = rows.length === 0;
  showAddresses(byId('urls'), rows);
}

function addTools() {
  const here = () => new URL(`${base}${query()}`, location).href;
  const dialog = new ShareDialog(here, stream);
  const share = element('button', { type: 'button', className: 'button', textContent: 'Share' });
  share.addEventListener('click', () => dialog.open());
  byId('tools').append(new CopyButton(here, 'Copy link').element, share);
  document.body.append(dialog.element);
}

/** Where names are not listed, the addresses are tried as they are usual. */
const UNLISTED = { unlisted: true, since: 0, viewers: 0, llhls: ['llhls.m3u8'], webrtc: ['webrtc_default'] };

/** Questions for what is live, and the newest that was answered: an older one has nothing to add. */
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
      // a node that relays it does not know since when it has been live, while nobody has it
      if (live.relayed) live.since = since ?? live.since;
      since = live.since;
      everLive = true;
      liveAt = performance.now();
      masterUrl = live.llhls.length > 0 ? llhlsUrl() : undefined;
    }
    interrupted = live === undefined && (await mayReturn());
  } catch (error) {
    // a server that answers with an error is there
    if (!(error instanceof TypeError) && error.name !== 'TimeoutError') return;
    if (own < answered) return;
    answered = own;
    refused++;
  }
  render();
}

/**
 * Any node keeps the playlist of a stream for as long as its publisher may return, and no longer. Without a playlist nobody
 * tells; a stream is not over yet while it may be on its way to another node.
 */
async function mayReturn() {
  const gone = performance.now() - liveAt;
  if (!everLive || gone > RETURN_MS + LIVE_POLL_MS) return false;
  if (masterUrl === undefined) return gone < MOVE_MS;
  try {
    const { status } = await ask(masterUrl, { method: 'HEAD' });
    return status !== 404;
  } catch (error) {
    // a server that has just told what is live does not answer: it waits for the stream
    if (error.name === 'TimeoutError') return true;
    throw error;
  }
}

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
  mode = target.value;
  const url = new URL(location);
  url.searchParams.set('mode', mode);
  history.replaceState(null, '', url);
  render();
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
