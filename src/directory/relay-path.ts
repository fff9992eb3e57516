import { joinKey, splitKey } from '#cluster';

/**
 * Prefixes of the byte streams that a node opens to another one to relay an output stream. `/relay/` goes to the owner, which
 * always accepts it. `/branch/` goes to the owner, which accepts a limited number, or to a node that relays the stream itself.
 */
export const RELAY_PREFIXES = ['/relay/', '/branch/'] as const;
export type RelayPrefix = (typeof RELAY_PREFIXES)[number];

/** The sender of a stream sends something every second. After this long without data a node asks another sender. */
export const RELAY_SILENCE_MS = 3000;

export interface OutputName {
  readonly vhost: string;
  readonly app: string;
  readonly output: string;
}

/** Key by which `RelayTree` ranks nodes for an output stream: the same on all of them. */
export function relayKey({ vhost, app, output }: OutputName): string {
  return joinKey(vhost, app, output);
}

export function relayPath(prefix: RelayPrefix, name: OutputName): string {
  return prefix + relayKey(name);
}

/** Parses a path; undefined if it names no output stream. */
export function readRelayPath(prefix: RelayPrefix, path: string): OutputName | undefined {
  try {
    const [vhost, app, output, ...more] = splitKey(path.slice(prefix.length));
    return vhost && app && output && more.length === 0 ? { vhost, app, output } : undefined;
  } catch {
    return undefined;
  }
}
