import { joinKey, splitKey } from '#cluster';

/**
 * Of the streams of bytes that a node opens to another one, to relay an output stream: `/relay/` to its owner, which always
 * sends it; `/branch/` to its owner, which sends it to so many nodes and refuses others, or to a node that relays it itself.
 */
export const RELAY_PREFIXES = ['/relay/', '/branch/'] as const;
export type RelayPrefix = (typeof RELAY_PREFIXES)[number];

/** The node that sends a stream says something every second. Who hears nothing for so long asks another one. */
export const RELAY_SILENCE_MS = 3000;

/** Names an output stream in the whole cluster. */
export interface OutputName {
  readonly vhost: string;
  readonly app: string;
  readonly output: string;
}

/** By which nodes are ranked for an output stream (RelayTree): it is the same on all of them. */
export function relayKey({ vhost, app, output }: OutputName): string {
  return joinKey(vhost, app, output);
}

export function relayPath(prefix: RelayPrefix, name: OutputName): string {
  return prefix + relayKey(name);
}

/** Undefined for what names none. */
export function readRelayPath(prefix: RelayPrefix, path: string): OutputName | undefined {
  try {
    const [vhost, app, output, ...more] = splitKey(path.slice(prefix.length));
    return vhost && app && output && more.length === 0 ? { vhost, app, output } : undefined;
  } catch {
    // not percent-encoded as it should be
    return undefined;
  }
}
