import { age, element } from '../common.js';
import { changeButton, heading, Table } from './parts.js';

/** The nodes of the cluster. */
export function nodesView(api) {
  const path = (id, action) => `/v1/cluster/nodes/${encodeURIComponent(id)}:${action}`;
  const table = new Table(
    'Nodes',
    [
      { title: 'Node', value: ({ id }) => id, sort: ({ id }) => id },
      {
        title: 'State',
        value: ({ state, configDiffers }) => (configDiffers ? `${state}, other configuration` : state),
        sort: ({ state }) => state,
      },
      { title: 'Load', numeric: true, value: ({ load }) => `${Math.round(load * 100)} %`, sort: ({ load }) => load },
      { title: 'Streams', numeric: true, value: ({ streams }) => streams, sort: ({ streams }) => streams },
      { title: 'Sessions', numeric: true, value: ({ sessions }) => sessions, sort: ({ sessions }) => sessions },
      { title: 'Up for', numeric: true, value: ({ uptime }) => age(uptime), sort: ({ uptime }) => uptime },
      { title: 'Version', value: ({ version }) => version, sort: ({ version }) => version },
      { title: 'Address', value: ({ address }) => address ?? '–', sort: ({ address }) => address ?? '' },
      { title: '', cell: (row) => new Drain(api, path, row.id) },
    ],
    'There is no node.',
  );
  return {
    element: element('div', {}, heading('Nodes'), table.element),
    refresh: async () => table.show(await api.get('/v1/cluster/nodes'), ({ id }) => id),
  };
}

/** Drains a node, or takes that back. */
class Drain {
  #drain;
  #undrain;
  #mayDrain;
  element;

  constructor(api, path, id) {
    this.#mayDrain = !api.isReadOnly;
    this.#drain = changeButton(api, 'Drain', () => api.call('POST', path(id, 'drain')), {
      ask: `Drain ${id}? It accepts no new streams, and hands over what it can.`,
      done: `${id} is being drained`,
    });
    this.#undrain = changeButton(api, 'Undrain', () => api.call('POST', path(id, 'undrain')), {
      done: `${id} accepts streams again`,
    });
    this.element = element('span', {}, this.#drain, this.#undrain);
  }

  update({ state }) {
    this.#drain.hidden = !this.#mayDrain || state !== 'ready';
    this.#undrain.hidden = !this.#mayDrain || state !== 'draining';
  }
}
