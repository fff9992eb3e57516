import { age, element } from '../common.js';
import { changeButton, heading, Table } from './parts.js';

/** @import { NodeInfo } from '../answers.ts' */
/** @import { Api } from './api.js' */
/** @import { View } from './parts.js' */

/**
 * The nodes of the cluster.
 * @param {Api} api
 * @returns {View}
 */
export function nodesView(api) {
  /** @type {Table<NodeInfo>} */
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
      { title: '', cell: (row) => new Drain(api, row.id) },
    ],
    'There is no node.',
  );
  return {
    element: element('div', {}, heading('Nodes'), table.element),
    refresh: async () => table.show(await api.nodes(), ({ id }) => id),
  };
}

/** Buttons that drain a node, and undrain it. */
class Drain {
  #drain;
  #undrain;
  #mayDrain;
  element;

  /**
   * @param {Api} api
   * @param {string} id
   */
  constructor(api, id) {
    const path = `/v1/cluster/nodes/${encodeURIComponent(id)}`;
    this.#mayDrain = !api.isReadOnly;
    this.#drain = changeButton(api, 'Drain', () => api.call('POST', `${path}:drain`), {
      ask: `Drain ${id}? It accepts no new streams, and hands over what it can.`,
      done: `${id} is being drained`,
    });
    this.#undrain = changeButton(api, 'Undrain', () => api.call('POST', `${path}:undrain`), {
      done: `${id} accepts streams again`,
    });
    this.element = element('span', {}, this.#drain, this.#undrain);
  }

  /** @param {NodeInfo} node */
  update({ state }) {
    this.#drain.hidden = !this.#mayDrain || state !== 'ready';
    this.#undrain.hidden = !this.#mayDrain || state !== 'draining';
  }
}
