import type { CodecEntry } from './codecs.ts';

/**
 * Joins the inventories of several nodes; every node gets the same result. A software module is one entry, with the sum of
 * its active encoders and decoders. Each device is an entry of its own, with another id than on its node if an earlier
 * node has a device of that id.
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

/** Gives an entry the first free id of its module, from its own on. */
function renamed(entry: CodecEntry, taken: Set<string>): CodecEntry {
  let { id } = entry;
  while (taken.has(`${entry.module}:${id}`)) id++;
  const name = `${entry.module}:${id}`;
  taken.add(name);
  return { ...entry, id, name };
}
