import { bits, element } from '../common.js';
import { eventTable } from './events.js';
import { heading, Sparkline } from './parts.js';
import { streamTable, streamKey } from './streams.js';

/** @import { StreamSummary } from '../answers.ts' */
/** @import { Api } from './api.js' */
/** @import { View } from './parts.js' */

const BUSIEST = 5;
const EVENTS = 12;

/**
 * Figures of the whole cluster, its busiest streams and its newest events.
 * @param {Api} api
 * @returns {View}
 */
export function overviewView(api) {
  const tiles = element('dl', { className: 'tiles' });
  /** @param {string} name */
  const makeTile = (name) => {
    const [number, line] = [element('dd'), new Sparkline()];
    tiles.append(element('div', {}, element('dt', {}, name), number, line.element));
    return { number, line };
  };
  /** @type {Map<string, ReturnType<typeof makeTile>>} */
  const figures = new Map();
  /**
   * @param {string} name
   * @param {string} text
   * @param {number} value
   */
  const tile = (name, text, value) => {
    const figure = figures.get(name) ?? makeTile(name);
    figures.set(name, figure);
    figure.number.textContent = text;
    figure.line.add(value);
  };
  const streams = streamTable(api, 'The busiest streams', 'Nothing is live.', 'Viewers');
  const events = eventTable('The newest events');
  const refresh = async () => {
    const [live, nodes, newest] = await Promise.all([api.streams(), api.nodes(), api.events(EVENTS)]);
    /** @param {(stream: StreamSummary) => number} of */
    const sum = (of) => live.reduce((total, stream) => total + of(stream), 0);
    const viewers = sum((stream) => stream.viewers);
    const [incoming, outgoing] = [sum((stream) => stream.bitrateIn), sum((stream) => stream.bitrateOut)];
    const ready = nodes.filter(({ state }) => state === 'ready');
    const load = Math.max(0, ...nodes.filter(({ state }) => state !== 'lost').map((node) => node.load));
    tile('Streams', `${live.length}`, live.length);
    tile('Viewers', `${viewers}`, viewers);
    tile('In', bits(incoming), incoming);
    tile('Out', bits(outgoing), outgoing);
    tile('Busiest node', `${Math.round(load * 100)} %`, load * 100);
    tile('Nodes ready', `${ready.length} of ${nodes.length}`, ready.length);
    const busiest = [...live].sort((a, b) => b.viewers - a.viewers || b.bitrateOut - a.bitrateOut).slice(0, BUSIEST);
    streams.show(busiest, streamKey);
    events.show(newest);
  };
  return {
    element: element(
      'div',
      {},
      heading('Overview'),
      tiles,
      element('h2', {}, 'Busiest streams'),
      streams.element,
      element('h2', {}, 'Newest events'),
      events.element,
    ),
    refresh,
  };
}
