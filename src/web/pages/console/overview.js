import { bits, element } from '../common.js';
import { eventTable } from './events.js';
import { heading, Sparkline } from './parts.js';
import { streamTable, streamKey } from './streams.js';

const BUSIEST = 5;
const EVENTS = 12;

/** Figures of the whole cluster, its busiest streams and what has happened lately. */
export function overviewView(api) {
  const tiles = element('dl', { className: 'tiles' });
  const figures = new Map();
  const tile = (name, text, value) => {
    if (!figures.has(name)) {
      const figure = { number: element('dd'), line: new Sparkline() };
      figures.set(name, figure);
      tiles.append(element('div', {}, element('dt', {}, name), figure.number, figure.line.element));
    }
    const { number, line } = figures.get(name);
    number.textContent = text;
    line.add(value);
  };
  const streams = streamTable(api, 'The busiest streams', 'Nothing is live.', 'Viewers');
  const events = eventTable('The newest events');
  const refresh = async () => {
    const [live, nodes, newest] = await Promise.all([
      api.get('/v1/cluster/streams'),
      api.get('/v1/cluster/nodes'),
      api.get(`/v1/cluster/events?count=${EVENTS}`),
    ]);
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
