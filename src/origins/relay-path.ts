import { joinKey, splitKey } from '#cluster';

/** Of the streams of bytes that a node opens to the one that has an output stream, to relay it. */
export const RELAY_PREFIX = '/relay/';

/** Names an output stream in the whole cluster. */
interface OutputName {
  readonly vhost: string;
  readonly app: string;
  readonly output: string;
}

export function relayPath({ vhost, app, output }: OutputName): string {
  return RELAY_PREFIX + joinKey(vhost, app, output);
}

/** Undefined for what names none. */
export function readRelayPath(path: string): OutputName | undefined {
  try {
    const [vhost, app, output, ...more] = splitKey(path.slice(RELAY_PREFIX.length));
    return vhost && app && output && more.length === 0 ? { vhost, app, output } : undefined;
  } catch {
    // not percent-encoded as it should be
    return undefined;
  }
}
