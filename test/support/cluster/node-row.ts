import type { NodeRow } from '#cluster';

/** A node that is ready and idle, as others know it. */
export function nodeRow(id: string, more: Partial<NodeRow> = {}): NodeRow {
  return {
    id,
    incarnation: `of ${id}`,
    load: 0,
    full: false,
    info: {},
    address: undefined,
    state: 'ready',
    uptimeMs: 0,
    silentMs: 0,
    ...more,
  };
}
