import { ask, element, root, showAddresses } from './common.js';

/** @import { PublishPlace, PublishPlaces } from './answers.ts' */

/** @typedef {readonly [name: string, value: string]} Entry */

/** Name of the stream in examples, until the publisher has chosen one. */
const EXAMPLE = 'mystream';

/**
 * Settings of encoders for the lowest delay, as OBS Studio names them.
 * @type {Entry[]}
 */
const ENCODER = [
  ['Keyframe interval', '1 s'],
  ['Tune', 'zerolatency'],
  ['B-frames', '0'],
  ['Rate control', 'CBR'],
];

/**
 * Lists the addresses at which this client may publish.
 * @returns {Promise<PublishPlaces>}
 * @throws as `ask`
 */
export async function fetchPlaces() {
  const response = await ask(new URL('-/publish.json', root));
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return await response.json();
}

/**
 * Addresses of a stream, by protocol.
 * @param {Pick<PublishPlace, 'rtmp' | 'srt' | 'whip'>} place
 * @param {string} stream
 * @returns {Entry[]}
 */
export function addressesOf({ rtmp, srt, whip }, stream) {
  const name = encodeURIComponent(stream);
  return [
    ...rtmp.map(
      (server) => /** @type {const} */ ([server.startsWith('rtmps') ? 'RTMPS' : 'RTMP', `${server}/${name}`]),
    ),
    ...(srt === undefined ? [] : [/** @type {const} */ (['SRT', `${srt}/${name}`])]),
    ...(whip === undefined ? [] : [/** @type {const} */ (['WHIP', `${whip}/${name}?direction=whip`])]),
  ];
}

/**
 * Settings of OBS Studio, by field; the first one is no address to copy.
 * @param {Pick<PublishPlace, 'rtmp' | 'srt' | 'whip'>} place
 * @param {string} stream
 * @returns {[] | [service: Entry, ...fields: Entry[]]}
 */
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

/**
 * Explains how to publish, as elements.
 * @param {Pick<PublishPlaces, 'applications' | 'restricted'>} places
 * @param {{ fromHere?: boolean, stream?: string | undefined }} [options] `fromHere`: this browser can
 */
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
  if (service !== undefined) settings.prepend(...plainRow(service));
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

/** @param {string} text */
const note = (text) => element('p', { className: 'muted' }, text);

/** @param {Entry} entry */
const plainRow = ([name, value]) => [element('dt', {}, name), element('dd', {}, value)];
