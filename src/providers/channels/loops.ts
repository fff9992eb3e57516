import type { StreamUrl } from '../placed/stream-url.ts';
import type { ChannelSource } from './channel-kind.ts';

/** A channel among those that may play each other. */
export interface ChannelNode {
  readonly vhost: string;
  readonly app: string;
  readonly name: string;
  /** Names of the output streams that are made of it. */
  readonly outputs: readonly string[];
  readonly sources: readonly ChannelSource[];
}

export interface Loop {
  /** Of the definition that closes it. */
  readonly element: string;
  /** The channels in it, as in `default/app/one`: the last one is the first. */
  readonly chain: readonly string[];
}

/**
 * Looks for a channel that would play itself, directly or through others.
 * @param channelsOf the other channels of an application
 */
export function findLoop(
  channel: ChannelNode,
  channelsOf: (vhost: string, app: string) => readonly ChannelNode[],
): Loop | undefined {
  const seen = new Set<ChannelNode>();
  const find = finder(channelsOf);
  for (const { element, url } of channel.sources) {
    // what is not explored yet, each with the way to it
    const ways: { readonly url: StreamUrl; readonly way: readonly string[] }[] = [{ url, way: [pathOf(channel)] }];
    for (let next = ways.pop(); next !== undefined; next = ways.pop()) {
      if (plays(next.url, channel)) return { element, chain: [...next.way, pathOf(channel)] };
      for (const other of find(next.url)) {
        if (seen.has(other) || pathOf(other) === pathOf(channel)) continue;
        seen.add(other);
        const way = [...next.way, pathOf(other)];
        for (const source of other.sources) ways.push({ url: source.url, way });
      }
    }
  }
  return undefined;
}

/** Finds channels by what they put out. */
function finder(channelsOf: (vhost: string, app: string) => readonly ChannelNode[]) {
  const known = new Map<string, Map<string, ChannelNode[]>>();
  return ({ vhost, app, stream }: StreamUrl): readonly ChannelNode[] => {
    const key = `${vhost}/${app}`;
    const byOutput = known.get(key) ?? new Map<string, ChannelNode[]>();
    if (!known.has(key)) {
      known.set(key, byOutput);
      for (const channel of channelsOf(vhost, app))
        for (const output of channel.outputs) byOutput.set(output, [...(byOutput.get(output) ?? []), channel]);
    }
    return byOutput.get(stream) ?? [];
  };
}

function plays({ vhost, app, stream }: StreamUrl, channel: ChannelNode): boolean {
  return vhost === channel.vhost && app === channel.app && channel.outputs.includes(stream);
}

function pathOf({ vhost, app, name }: ChannelNode): string {
  return `${vhost}/${app}/${name}`;
}
