import { element, replaceIfChanged, showAddresses } from '../common.js';
import { Choice } from './parts.js';

/** @import { NodeInfo } from '../answers.ts' */
/** @import { StreamName } from './api.js' */

/** Addresses at which a stream is published and played, as a node reports them. */
export class Addresses {
  #stream;
  #node = new Choice('address-node', 'Node');
  #place = element('div');
  /** @type {{ nodes: NodeInfo[], outputs: string[] }} */
  #shown = { nodes: [], outputs: [] };
  element = element('div', {}, this.#node.element, this.#place);

  /** @param {StreamName} stream */
  constructor(stream) {
    this.#stream = stream;
    this.#node.onChoice = () => this.#draw();
  }

  /**
   * @param {readonly NodeInfo[]} nodes
   * @param {string | undefined} owner id of the node that has the stream, which is listed first
   * @param {string[]} outputs
   */
  show(nodes, owner, outputs) {
    const ready = nodes.filter(({ id, state }) => state === 'ready' || id === owner);
    ready.sort((a, b) => Number(b.id === owner) - Number(a.id === owner));
    this.#shown = { nodes: ready, outputs };
    this.#node.show(ready.map(({ id }) => id));
    this.#draw();
  }

  #draw() {
    const { nodes, outputs } = this.#shown;
    const { addresses = {} } = nodes.find(({ id }) => id === this.#node.chosen) ?? {};
    /** @type {(readonly [title: string, rows: Address[]])[]} */
    const groups = [
      ['Publish', publishRows(addresses, this.#stream)],
      ...outputs.map(
        (output) => /** @type {const} */ ([`Play ${output}`, playRows(addresses, { ...this.#stream, output })]),
      ),
    ];
    replaceIfChanged(this.#place, groups, () =>
      groups
        .filter(([, rows]) => rows.length > 0)
        .flatMap(([title, rows]) => {
          const list = element('dl', { className: 'facts' });
          showAddresses(list, rows);
          return [element('h3', {}, title), list];
        }),
    );
  }
}

/** @typedef {readonly [name: string, url: string]} Address */

/** @param {string[]} parts */
const inPath = (...parts) => parts.map(encodeURIComponent).join('/');

/**
 * @param {NodeInfo['addresses']} addresses by module
 * @param {StreamName} stream
 * @returns {Address[]}
 */
function publishRows({ rtmp = [], whip = [], srt = [], rtsp = [] }, { vhost, app, stream }) {
  return [
    ...rtmp.map((base) => /** @type {const} */ (['RTMP', `${base}/${inPath(app, stream)}`])),
    ...whip.map((base) => /** @type {const} */ (['WHIP', `${base}/${inPath(app, stream)}?direction=whip`])),
    ...srt.map((base) => /** @type {const} */ (['SRT', `${base}?streamid=${inPath(vhost, app, stream)}`])),
    ...rtsp.map((base) => /** @type {const} */ (['RTSP', `${base}/${inPath(app, stream)}`])),
  ];
}

/**
 * @param {NodeInfo['addresses']} addresses by module
 * @param {StreamName & { output: string }} stream
 * @returns {Address[]}
 */
function playRows(
  { llhls = [], hls = [], flv = [], webrtc = [], rtmpPlay = [], srtPlay = [], rtspPlay = [], ovt = [] },
  { vhost, app, output },
) {
  const path = inPath(app, output);
  return [
    ...llhls.map((base) => /** @type {const} */ (['Page', `${base}/${path}`])),
    ...llhls.map((base) => /** @type {const} */ (['LL-HLS', `${base}/${path}/llhls.m3u8`])),
    ...hls.map((base) => /** @type {const} */ (['HLS (TS)', `${base}/${path}/ts:playlist.m3u8`])),
    ...flv.map((base) => /** @type {const} */ (['HTTP-FLV', `${base}/${path}.flv`])),
    ...webrtc.map((base) => /** @type {const} */ (['WHEP', `${base.replace(/^ws/, 'http')}/${path}?direction=whep`])),
    ...webrtc.map((base) => /** @type {const} */ (['OvenPlayer', `${base}/${path}`])),
    ...rtmpPlay.map((base) => /** @type {const} */ (['RTMP', `${base}/${path}`])),
    ...srtPlay.map((base) => /** @type {const} */ (['SRT', `${base}?streamid=${inPath(vhost, app, output)}`])),
    ...rtspPlay.map((base) => /** @type {const} */ (['RTSP', `${base}/${path}`])),
    ...ovt.map((base) => /** @type {const} */ (['OVT', `${base}/${path}`])),
  ];
}
