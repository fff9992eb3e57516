import type { CodecEntry } from './codecs.ts';

/**
 * The inventory of several nodes, the same whichever of them joins it. A software module is one entry, with what is at
 * work of it everywhere. Each device is one of its own: its id is another than on its node where an earlier node has a
 * device of that id.
 * @param inventories by node
 */
export function joinInventories(inventories: ReadonlyMap<string, readonly CodecEntry[]>): CodecEntry[] {
  const software = new Map<string, CodecEntry>();
  const devices: CodecEntry[] = [];
  const taken = new Set<string>();
  for (const [, entries] of [...inventories].sort(([a], [b]) => (a < b ? -1 : 1))) {
    for (const entry of entries) {
      if (entry.isHwAccel) {
        devices.push(renamed(entry, taken));
      } else {
        const key = `${entry.mediaType}/${entry.name}`;
        const present = software.get(key);
        software.set(key, present === undefined ? entry : merged(present, entry));
      }
    }
  }
  return [...software.values(), ...devices];
}

function merged(a: CodecEntry, b: CodecEntry): CodecEntry {
  const { active } = a.metrics;
  const { decoder, encoder } = b.metrics.active;
  return {
    ...a,
    isDecoder: a.isDecoder || b.isDecoder,
    isEncoder: a.isEncoder || b.isEncoder,
    isDefault: a.isDefault || b.isDefault,
    metrics: { active: { decoder: active.decoder + decoder, encoder: active.encoder + encoder } },
    supportedCodecs: [...new Set([...a.supportedCodecs, ...b.supportedCodecs])],
  };
}

/** With the first id of its module that is free, its own if it is. */
function renamed(entry: CodecEntry, taken: Set<string>): CodecEntry {
  let { id } = entry;
  while (taken.has(`${entry.module}:${id}`)) id++;
  const name = `${entry.module}:${id}`;
  taken.add(name);
  return { ...entry, id, name };
}
