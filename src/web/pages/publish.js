import { bits, CopyButton, element, ownPath, playerPath } from './common.js';
import { canCapture, capture, devices, QUALITIES, stopAll } from './capture.js';
import { fetchPlaces, placesGuide } from './places.js';
import { Refused, WhipSession } from './whip-session.js';

const RETRY_MS = [1000, 2000, 4000, 8000];
const STATS_MS = 1000;
const INSECURE = 'Browsers let a page use a camera only over HTTPS, or from the machine that it runs on.';
const NO_WHIP = 'This port of the server takes no publishers by WebRTC.';

const byId = (id) => document.getElementById(id);
const form = byId('settings');
const { app, stream, source, camera, microphone, quality } = form.elements;
/** What the address says beyond that: policies and signatures belong to the address that is published to. */
const passed = new URLSearchParams(location.search);
passed.delete('publish');
passed.delete('direction');
const [pathApp, pathStream] = ownPath();

/** `idle`, `starting`, `live` or `reconnecting`. */
let state = 'idle';
let media;
let session;
let retry;
let attempts = 0;
let last;
let places;

function endpoint() {
  const rest = passed.size > 0 ? `&${passed}` : '';
  return `${playerPath(app.value, stream.value)}?direction=whip${rest}`;
}

function show(next, wrong) {
  state = next;
  const isOn = state !== 'idle';
  document.body.dataset.state = state;
  byId('state').textContent = { idle: '', starting: 'Starting', live: 'Live', reconnecting: 'Reconnecting' }[state];
  byId('start').hidden = isOn;
  byId('stop').hidden = !isOn;
  for (const field of [app, stream]) field.disabled = isOn || field.dataset.fixed === 'true';
  for (const field of source) field.disabled = isOn;
  byId('watch').hidden = state !== 'live';
  byId('cover').hidden = isOn && media?.getVideoTracks().length > 0;
  byId('cover-title').textContent = isOn ? 'Audio only' : 'Not live';
  byId('cover-text').textContent = isOn ? 'The microphone is being published.' : 'What you publish is shown here.';
  byId('wrong').hidden = wrong === undefined;
  byId('wrong').textContent = wrong ?? '';
  if (state !== 'live') for (const cell of document.querySelectorAll('.figures dd')) cell.textContent = '–';
  document.title = `${state === 'live' ? '● ' : ''}Publish · Kiln`;
}

const wanted = () => ({
  source: source.value,
  camera: camera.value,
  microphone: microphone.value,
  quality: quality.value,
});

async function take() {
  const taken = await capture(wanted());
  // the browser's own button ends what shows the screen
  for (const track of taken.getTracks()) track.addEventListener('ended', () => taken === media && stop());
  return taken;
}

function use(taken) {
  media = taken;
  byId('preview').srcObject = taken;
}

async function start() {
  show('starting');
  try {
    const taken = await take();
    if (state !== 'starting') return stopAll(taken);
    use(taken);
    show('starting');
    void fillDevices();
    await publish();
  } catch (error) {
    // what was stopped meanwhile is over without a reason
    if (state === 'starting') stop(error);
  }
}

async function publish() {
  const own = new WhipSession(() => own === session && reconnect());
  session = own;
  last = undefined;
  await own.publish(endpoint(), media, {
    maxBitrate: QUALITIES[quality.value].maxBitrate,
    contentHint: source.value === 'screen' ? 'detail' : 'motion',
  });
  if (own !== session) return;
  attempts = 0;
  const page = new URL(playerPath(app.value, stream.value), location);
  byId('watch-link').href = page;
  show('live');
}

function reconnect() {
  session?.close();
  session = undefined;
  show('reconnecting');
  clearTimeout(retry);
  retry = setTimeout(
    () =>
      publish().catch((error) => {
        if (state !== 'reconnecting') return;
        if (error instanceof Refused && !error.mayPass) stop(error);
        else reconnect();
      }),
    RETRY_MS[Math.min(attempts++, RETRY_MS.length - 1)],
  );
}

/** @param error why it was not the user's wish */
function stop(error) {
  clearTimeout(retry);
  attempts = 0;
  session?.close();
  session = undefined;
  stopAll(media);
  media = undefined;
  byId('preview').srcObject = null;
  show('idle', error && explain(error));
}

function explain(error) {
  if (error instanceof TypeError || error.name === 'TimeoutError') return 'The server cannot be reached.';
  return error instanceof Refused ? `The server says: ${error.message}` : error.message;
}

/** Another camera, microphone or quality while it is live: viewers see the change, and nothing begins anew. */
async function change() {
  if (session === undefined || source.value === 'screen') return;
  const before = media;
  try {
    const taken = await take();
    // it was stopped while the browser asked
    if (media !== before) return stopAll(taken);
    use(taken);
    for (const track of taken.getTracks()) await session?.replace(track, QUALITIES[quality.value].maxBitrate);
    stopAll(before);
  } catch (error) {
    show(state, error.message);
  }
}

async function fillDevices() {
  for (const [select, kind] of [
    [camera, 'videoinput'],
    [microphone, 'audioinput'],
  ]) {
    const chosen = select.value;
    const options = (await devices(kind)).map(({ id, label }) => element('option', { value: id, textContent: label }));
    select.replaceChildren(element('option', { value: '', textContent: 'Default' }), ...options);
    select.value = options.some(({ value }) => value === chosen) ? chosen : '';
  }
}

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
    limit: { cpu: 'this computer', bandwidth: 'the network', none: 'nothing' }[video?.qualityLimitationReason],
  };
  last = { bytes, at };
  for (const [name, text] of Object.entries(figures)) byId(`figure-${name}`).textContent = text || '–';
}

/** What the chosen source makes of the form. */
function showFields() {
  byId('camera-field').hidden = source.value !== 'camera';
  byId('quality-field').hidden = source.value === 'sound';
}

function showGuide() {
  if (places === undefined) return;
  byId('guide').replaceChildren(...placesGuide(places, { stream: stream.value || undefined }));
  byId('guide-title').hidden = byId('guide').children.length === 0;
}

async function prepare() {
  const isFixed = pathStream !== undefined;
  if (isFixed) [app.value, stream.value] = [pathApp, pathStream];
  for (const field of [app, stream]) field.dataset.fixed = `${isFixed}`;
  show('idle');
  const canTake = canCapture();
  if (canTake) void fillDevices();
  byId('start').disabled = true;
  places = await fetchPlaces();
  const names = places.applications.filter(({ whip }) => whip !== undefined).map((place) => place.app);
  byId('apps').replaceChildren(...names.map((value) => element('option', { value })));
  if (!isFixed && names.length > 0) app.value ||= names[0];
  byId('start').disabled = !canTake || !places.here;
  if (!places.here) show('idle', NO_WHIP);
  else if (!canTake) show('idle', INSECURE);
  showGuide();
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  if (state === 'idle' && !byId('start').disabled) void start();
});
byId('stop').addEventListener('click', () => stop());
form.addEventListener('change', ({ target }) => {
  showFields();
  if ([camera, microphone, quality].includes(target)) void change();
});
stream.addEventListener('input', showGuide);
byId('watch').append(new CopyButton(() => byId('watch-link').href, 'Copy its address').element);
navigator.mediaDevices?.addEventListener?.('devicechange', () => void fillDevices());
addEventListener('beforeunload', (event) => {
  if (state !== 'idle') event.preventDefault();
});
addEventListener('pagehide', () => stop());
setInterval(() => void showStats(), STATS_MS);
showFields();
prepare().catch(() => show('idle', 'The server cannot be reached. Load the page again.'));
