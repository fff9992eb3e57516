import { element, replaceIfChanged, showAddresses } from '../common.js';
import { Choice } from './parts.js';

/** Where a stream is published and played, by what a node says of its addresses. */
export class Addresses {
  #stream;
  #node = new Choice('address-node', 'Node');
  #place = element('div');
  #shown = { nodes: [], outputs: [] };
  element = element('div', {}, this.#node.element, this.#place);

  constructor(stream) {
    this.#stream = stream;
    this.#node.onChoice = () => this.#draw();
  }

  /** @param owner id of the node that has the stream, which is the first to be shown */
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
    const groups = [
      ['Publish', publishRows(addresses, this.#stream)],
      ...outputs.map((output) => [`Play ${output}`, playRows(addresses, { ...this.#stream, output })]),
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

const inPath = (...parts) => parts.map(encodeURIComponent).join('/');

function publishRows({ rtmp = [], whip = [], srt = [] }, { vhost, app, stream }) {
  return [
    ...rtmp.map((base) => ['RTMP', `${base}/${inPath(app, stream)}`]),
    ...whip.map((base) => ['WHIP', `${base}/${inPath(app, stream)}?direction=whip`]),
    ...srt.map((base) => ['SRT', `${base}?streamid=${inPath(vhost, app, stream)}`]),
  ];
}

function playRows({ llhls = [], hls = [], webrtc = [], srtPlay = [], ovt = [] }, { vhost, app, output }) {
  const path = inPath(app, output);
  return [
    ...llhls.map((base) => ['Page', `${base}/${path}`]),
    ...llhls.map((base) => ['LL-HLS', `${base}/${path}/llhls.m3u8`]),
    ...hls.map((base) => ['HLS (TS)', `${base}/${path}/ts:playlist.m3u8`]),
    ...webrtc.map((base) => ['WHEP', `${base.replace(/^ws/, 'http')}/${path}?direction=whep`]),
    ...webrtc.map((base) => ['OvenPlayer', `${base}/${path}`]),
    ...srtPlay.map((base) => ['SRT', `${base}?streamid=${inPath(vhost, app, output)}`]),
    ...ovt.map((base) => ['OVT', `${base}/${path}`]),
  ];
}
