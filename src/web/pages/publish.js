import { bits, byId, CopyButton, element, find, messageOf, ownPath, playerPath } from './common.js';
import { canCapture, capture, devices, QUALITIES, stopAll } from './capture.js';
import { fetchPlaces, placesGuide } from './places.js';
import { Refused, WhipSession } from './whip-session.js';

/** @import { PublishPlaces } from './answers.ts' */
/** @import { Quality } from './capture.js' */

const RETRY_MS = [1000, 2000, 4000, 8000];
const STATS_MS = 1000;
const INSECURE = 'Browsers let a page use a camera only over HTTPS, or from the machine that it runs on.';
const NO_WHIP = 'This port of the server takes no publishers by WebRTC.';

const form = find(HTMLFormElement, '#settings');
const [app, stream] = [find(HTMLInputElement, '#app'), find(HTMLInputElement, '#stream')];
const [camera, microphone, quality] = [select('camera'), select('microphone'), select('quality')];
const sources = [...form.querySelectorAll('input')].filter(({ name }) => name === 'source');
const preview = find(HTMLVideoElement, '#preview');
const startButton = find(HTMLButtonElement, '#start');
const watchLink = find(HTMLAnchorElement, '#watch-link');
/** Other parameters of the address: policies and signatures belong to the address that is published to. */
const passed = new URLSearchParams(location.search);
passed.delete('publish');
passed.delete('direction');
const [pathApp, pathStream] = ownPath();

/** @typedef {'idle' | 'starting' | 'live' | 'reconnecting'} State */

/** @type {State} */
let state = 'idle';
/** @type {MediaStream | undefined} */
let media;
/** @type {WhipSession | undefined} */
let session;
/** @type {number | undefined} */
let retry;
let attempts = 0;
/** @type {{ bytes: number, at: number } | undefined} */
let last;
/** @type {PublishPlaces | undefined} */
let places;

/** @param {string} id */
function select(id) {
  return find(HTMLSelectElement, `#${id}`);
}

/** The chosen source, as `capture` takes it. */
function source() {
  return sources.find(({ checked }) => checked)?.value ?? '';
}

/** The present state, which may have changed during a wait. */
const now = () => state;

function chosenQuality() {
  return /** @type {Quality} */ (Number(quality.value));
}

function endpoint() {
  const rest = passed.size > 0 ? `&${passed}` : '';
  return `${playerPath(app.value, stream.value)}?direction=whip${rest}`;
}

/**
 * @param {State} next
 * @param {string} [wrong]
 */
function show(next, wrong) {
  state = next;
  const isOn = state !== 'idle';
  document.body.dataset['state'] = state;
  byId('state').textContent = { idle: '', starting: 'Starting', live: 'Live', reconnecting: 'Reconnecting' }[state];
  startButton.hidden = isOn;
  byId('stop').hidden = !isOn;
  for (const field of [app, stream]) field.disabled = isOn || field.dataset['fixed'] === 'true';
  for (const field of sources) field.disabled = isOn;
  byId('watch').hidden = state !== 'live';
  byId('cover').hidden = isOn && media !== undefined && media.getVideoTracks().length > 0;
  byId('cover-title').textContent = isOn ? 'Audio only' : 'Not live';
  byId('cover-text').textContent = isOn ? 'The microphone is being published.' : 'What you publish is shown here.';
  byId('wrong').hidden = wrong === undefined;
  byId('wrong').textContent = wrong ?? '';
  if (state !== 'live') for (const cell of document.querySelectorAll('.figures dd')) cell.textContent = '–';
  document.title = `${state === 'live' ? '● ' : ''}Publish · Kiln`;
}

const wanted = () => ({
  source: source(),
  camera: camera.value,
  microphone: microphone.value,
  quality: chosenQuality(),
});

async function take() {
  const taken = await capture(wanted());
  // the browser's own button ends the capture of a screen
  for (const track of taken.getTracks()) track.addEventListener('ended', () => taken === media && stop());
  return taken;
}

/** @param {MediaStream} taken */
function use(taken) {
  media = taken;
  preview.srcObject = taken;
}

async function start() {
  show('starting');
  try {
    const taken = await take();
    if (now() !== 'starting') return stopAll(taken);
    use(taken);
    show('starting');
    void fillDevices();
    await publish(taken);
  } catch (error) {
    // the user has stopped it since: no reason is shown
    if (now() === 'starting') stop(error);
  }
}

/** @param {MediaStream} taken */
async function publish(taken) {
  const own = new WhipSession(() => own === session && reconnect());
  session = own;
  last = undefined;
  await own.publish(endpoint(), taken, {
    maxBitrate: QUALITIES[chosenQuality()].maxBitrate,
    contentHint: source() === 'screen' ? 'detail' : 'motion',
  });
  if (own !== session) return;
  attempts = 0;
  watchLink.href = new URL(playerPath(app.value, stream.value), location.href).href;
  show('live');
}

function reconnect() {
  session?.close();
  session = undefined;
  show('reconnecting');
  clearTimeout(retry);
  retry = setTimeout(
    () =>
      publishAgain().catch((error) => {
        if (state !== 'reconnecting') return;
        if (error instanceof Refused && !error.mayPass) stop(error);
        else reconnect();
      }),
    RETRY_MS[Math.min(attempts++, RETRY_MS.length - 1)],
  );
}

async function publishAgain() {
  if (media !== undefined) await publish(media);
}

/** @param {unknown} [error] undefined where the user stopped */
function stop(error) {
  clearTimeout(retry);
  attempts = 0;
  session?.close();
  session = undefined;
  stopAll(media);
  media = undefined;
  preview.srcObject = null;
  show('idle', error === undefined ? undefined : explain(error));
}

/** @param {unknown} error */
function explain(error) {
  const isTimeout = error instanceof Error && error.name === 'TimeoutError';
  if (error instanceof TypeError || isTimeout) return 'The server cannot be reached.';
  return error instanceof Refused ? `The server says: ${error.message}` : messageOf(error);
}

/** Uses another camera, microphone or quality while it is live: viewers see the change, and nothing begins anew. */
async function change() {
  if (session === undefined || source() === 'screen') return;
  const before = media;
  try {
    const taken = await take();
    // it was stopped while the browser asked
    if (media !== before) return stopAll(taken);
    use(taken);
    for (const track of taken.getTracks()) await session?.replace(track, QUALITIES[chosenQuality()].maxBitrate);
    stopAll(before);
  } catch (error) {
    show(state, messageOf(error));
  }
}

async function fillDevices() {
  for (const [field, kind] of /** @type {const} */ ([
    [camera, 'videoinput'],
    [microphone, 'audioinput'],
  ])) {
    const chosen = field.value;
    const options = (await devices(kind)).map(({ id, label }) => element('option', { value: id, textContent: label }));
    field.replaceChildren(element('option', { value: '', textContent: 'Default' }), ...options);
    field.value = options.some(({ value }) => value === chosen) ? chosen : '';
  }
}

/** Texts of `qualityLimitationReason`. */
const LIMITS = new Map([
  ['cpu', 'this computer'],
  ['bandwidth', 'the network'],
  ['none', 'nothing'],
]);

async function showStats() {
  if (state !== 'live' || session === undefined) return;
  const own = session;
  const report = [...(await own.report()).values()];
  if (own !== session) return;
  const sent = report.filter(({ type }) => type === 'outbound-rtp');
  const video = sent.find(({ kind }) => kind === 'video');
  const bytes = sent.reduce((sum, { bytesSent }) => sum + bytesSent, 0);
  const at = performance.now();
  const trip = report.find(({ type }) => type === 'remote-inbound-rtp')?.roundTripTime;
  const figures = {
    bitrate: last && bits(((bytes - last.bytes) * 8000) / (at - last.at)),
    resolution: video?.frameWidth && `${video.frameWidth}×${video.frameHeight}`,
    rate: video?.framesPerSecond && `${Math.round(video.framesPerSecond)} fps`,
    trip: trip === undefined ? undefined : `${Math.round(trip * 1000)} ms`,
    limit: LIMITS.get(video?.qualityLimitationReason),
  };
  last = { bytes, at };
  for (const [name, text] of Object.entries(figures)) byId(`figure-${name}`).textContent = text || '–';
}

/** Shows the fields of the chosen source. */
function showFields() {
  byId('camera-field').hidden = source() !== 'camera';
  byId('quality-field').hidden = source() === 'sound';
}

function showGuide() {
  if (places === undefined) return;
  byId('guide').replaceChildren(...placesGuide(places, { stream: stream.value || undefined }));
  byId('guide-title').hidden = byId('guide').children.length === 0;
}

async function prepare() {
  const isFixed = pathStream !== undefined;
  if (isFixed) [app.value, stream.value] = [pathApp ?? '', pathStream];
  for (const field of [app, stream]) field.dataset['fixed'] = `${isFixed}`;
  show('idle');
  const canTake = canCapture();
  if (canTake) void fillDevices();
  startButton.disabled = true;
  places = await fetchPlaces();
  const names = places.applications.filter(({ whip }) => whip !== undefined).map((place) => place.app);
  byId('apps').replaceChildren(...names.map((value) => element('option', { value })));
  if (!isFixed) app.value ||= names[0] ?? '';
  startButton.disabled = !canTake || !places.here;
  if (!places.here) show('idle', NO_WHIP);
  else if (!canTake) show('idle', INSECURE);
  showGuide();
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  if (state === 'idle' && !startButton.disabled) void start();
});
byId('stop').addEventListener('click', () => stop());
form.addEventListener('change', ({ target }) => {
  showFields();
  if (target === camera || target === microphone || target === quality) void change();
});
stream.addEventListener('input', showGuide);
byId('watch').append(new CopyButton(() => watchLink.href, 'Copy its address').element);
navigator.mediaDevices?.addEventListener?.('devicechange', () => void fillDevices());
addEventListener('beforeunload', (event) => {
  if (state !== 'idle') event.preventDefault();
});
addEventListener('pagehide', () => stop());
setInterval(() => void showStats(), STATS_MS);
showFields();
prepare().catch(() => show('idle', 'The server cannot be reached. Load the page again.'));
