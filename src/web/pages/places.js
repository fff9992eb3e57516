import { ask, element, root, showAddresses } from './common.js';

/** For the example of an address, until the publisher has chosen a name. */
const EXAMPLE = 'mystream';

/** What encoders are set to for the lowest delay, as OBS Studio names it. */
const ENCODER = [
  ['Keyframe interval', '1 s'],
  ['Tune', 'zerolatency'],
  ['B-frames', '0'],
  ['Rate control', 'CBR'],
];

/** Where one may publish: `{ here, restricted, applications: [{ app, rtmp, srt, whip }] }`. @throws what `ask` does */
export async function fetchPlaces() {
  const response = await ask(new URL('-/publish.json', root));
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return await response.json();
}

/** The addresses of a stream by `[name, url]`. */
export function addressesOf({ rtmp, srt, whip }, stream) {
  const name = encodeURIComponent(stream);
  return [
    ...rtmp.map((server) => [server.startsWith('rtmps') ? 'RTMPS' : 'RTMP', `${server}/${name}`]),
    ...(srt === undefined ? [] : [['SRT', `${srt}/${name}`]]),
    ...(whip === undefined ? [] : [['WHIP', `${whip}/${name}?direction=whip`]]),
  ];
}

/** What is entered in OBS Studio, by `[field, value]`. */
export function obsSettings({ rtmp: [server], srt, whip }, stream) {
  if (server !== undefined) {
    return [
      ['Service', 'Custom'],
      ['Server', server],
      ['Stream Key', encodeURIComponent(stream)],
    ];
  }
  const [, address] = addressesOf({ rtmp: [], srt, whip }, stream).at(-1) ?? [];
  if (address === undefined) return [];
  return [
    ['Service', whip === undefined ? 'Custom' : 'WHIP'],
    ['Server', address],
  ];
}

/** Tells how to publish, as elements. @param fromHere whether this browser can */
export function placesGuide({ applications, restricted }, { fromHere = false, stream = EXAMPLE } = {}) {
  const [first] = applications;
  if (first === undefined) {
    return restricted ? [note('Publishing needs an address that is signed for you: ask who runs this server.')] : [];
  }
  const browser = element(
    'section',
    { className: 'way' },
    element('h2', {}, 'This browser'),
    element('p', { className: 'muted' }, 'Camera, microphone or screen, without any program.'),
    element('a', { href: new URL('publish', root).href, className: 'button strong' }, 'Publish from this browser'),
  );
  const obs = element('section', { className: 'way' }, element('h2', {}, 'OBS Studio'));
  const [service, ...fields] = obsSettings(first, stream);
  const settings = element('dl', { className: 'addresses' });
  showAddresses(settings, fields);
  settings.prepend(...plainRow(service));
  obs.append(note('Settings → Stream'), settings, note('Output → Advanced, for the lowest delay'));
  obs.append(element('dl', { className: 'addresses' }, ...ENCODER.flatMap(plainRow)));
  const other = element('section', { className: 'way' }, element('h2', {}, 'Any other encoder'));
  for (const place of applications) {
    const addresses = element('dl', { className: 'addresses' });
    showAddresses(addresses, addressesOf(place, stream));
    if (applications.length > 1) other.append(element('h3', {}, place.app));
    other.append(addresses);
  }
  if (stream === EXAMPLE) other.append(note(`Choose any name instead of ${EXAMPLE}.`));
  return [...(fromHere ? [browser] : []), obs, other];
}

const note = (text) => element('p', { className: 'muted' }, text);

const plainRow = ([name, value]) => [element('dt', {}, name), element('dd', {}, value)];
