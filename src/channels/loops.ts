import type { StreamUrl } from './sources/stream-url.ts';
import type { ChannelSource } from './channel-kind.ts';

/** A channel as a node of the graph. */
export interface ChannelNode {
  readonly vhost: string;
  readonly app: string;
  readonly name: string;
  /** Names of its output streams. */
  readonly outputs: readonly string[];
  readonly sources: readonly ChannelSource[];
}

export interface Loop {
  /** Element of the definition that closes the loop. */
  readonly element: string;
  /** The channels of the loop, such as `default/app/one`; the last one is the first. */
  readonly chain: readonly string[];
}

/** Finds the channels that put out any of these streams. */
export type ChannelsBehind = (urls: readonly StreamUrl[]) => Promise<readonly ChannelNode[]>;

/** A channel still to explore, with the path to it. */
interface Step {
  readonly element: string;
  readonly url: StreamUrl;
  readonly way: readonly string[];
}

/** Finds the shortest loop by which a channel would play itself, directly or through others. */
export async function findLoop(channel: ChannelNode, channelsBehind: ChannelsBehind): Promise<Loop | undefined> {
  const own = pathOf(channel);
  const seen = new Set([own]);
  let steps: Step[] = channel.sources.map(({ element, url }) => ({ element, url, way: [own] }));
  while (steps.length > 0) {
    const closing = steps.find(({ url }) => plays(url, channel));
    if (closing !== undefined) return { element: closing.element, chain: [...closing.way, own] };
    const byUrl = Map.groupBy(steps, ({ url }) => keyOf(url));
    const behind = await channelsBehind([...byUrl.values()].map(([step]) => (step as Step).url));
    // files of one channel may differ between nodes
    const found = [...Map.groupBy(behind, pathOf)].filter(([path]) => !seen.has(path));
    steps = found.flatMap(([path, nodes]) => {
      seen.add(path);
      return nodes.flatMap((other) => {
        const [step] = other.outputs.flatMap((stream) => byUrl.get(keyOf({ ...other, stream })) ?? []);
        if (step === undefined) return [];
        const way = [...step.way, path];
        return other.sources.map(({ url }) => ({ element: step.element, url, way }));
      });
    });
  }
  return undefined;
}

function plays({ vhost, app, stream }: StreamUrl, channel: ChannelNode): boolean {
  return vhost === channel.vhost && app === channel.app && channel.outputs.includes(stream);
}

function keyOf({ vhost, app, stream }: StreamUrl): string {
  return JSON.stringify([vhost, app, stream]);
}

function pathOf({ vhost, app, name }: ChannelNode): string {
  return `${vhost}/${app}/${name}`;
}
