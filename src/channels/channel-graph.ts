import Type from 'typebox';
import { outputName } from '../config/output-name.ts';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import type { OtherNodes } from '../peers/other-nodes.ts';
import { definePeerCall, STREAM_FIELDS } from '../peers/peer-call.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import type { TaskName } from '../tasks/definition.ts';
import type { TaskDefinitions } from '../tasks/definitions.ts';
import type { StreamUrl } from './sources/stream-url.ts';
import { CHANNEL_KINDS, type ChannelKind, type ChannelSource } from './channel-kind.ts';
import { taskName } from './channel-name.ts';
import { findLoop, type ChannelNode, type Loop } from './loops.ts';

/** Nodes that do not answer in time are skipped: channels check again each time they open a stream. */
const ANSWER_MS = 1000;

const Url = Type.Object(STREAM_FIELDS);
const Node = Type.Object({
  vhost: Type.String(),
  app: Type.String(),
  name: Type.String(),
  outputs: Type.Array(Type.String()),
  sources: Type.Array(Type.Object({ element: Type.String(), url: Url })),
});
/** Finds channels that only the called node knows, from its files, and that put out any of these streams. */
const BEHIND = definePeerCall(
  'channels/behind',
  Type.Object({ urls: Type.Array(Url) }),
  Type.Object({ channels: Type.Array(Node) }),
);

export interface ChannelGraphOptions {
  readonly registry: Registry;
  readonly definitions: TaskDefinitions;
  readonly others: OtherNodes;
  readonly calls: PeerCalls;
}

/** Streams that a channel plays and makes, by its definition. */
interface Wiring {
  readonly isBypassed: boolean;
  readonly sources: readonly ChannelSource[];
}

/** Graph of the channels in the cluster and the streams that they play. */
export class ChannelGraph {
  readonly #options: ChannelGraphOptions;
  /** By definition object, which never changes; undefined for one that this version cannot read. */
  readonly #wirings = new WeakMap<object, Wiring | undefined>();

  constructor(options: ChannelGraphOptions) {
    this.#options = options;
    options.calls.answer(BEHIND, ({ urls }) => {
      const isOffered = (name: TaskName): boolean => options.definitions.stored(name) === undefined;
      const channels = this.#finder(isOffered)(urls);
      return {
        channels: channels.map((node) => ({ ...node, outputs: [...node.outputs], sources: [...node.sources] })),
      };
    });
  }

  /**
   * Finds out how a channel of this definition would play itself, directly or through others; undefined when it would
   * not.
   */
  async loop<S>(kind: ChannelKind<S>, application: Application, name: string, spec: S): Promise<Loop | undefined> {
    return await this.#loopOf(this.#node(taskName(kind, application, name), wiringOf(kind, spec)));
  }

  /**
   * Finds the loop that a known channel would close by playing a stream: its channels in order, the last being the
   * first.
   */
  async chain(application: Application, name: string, url: StreamUrl): Promise<readonly string[] | undefined> {
    const [node] = CHANNEL_KINDS.flatMap((kind: ChannelKind<unknown>) =>
      this.#known(kind, taskName(kind, application, name)),
    );
    return node && (await this.#loopOf({ ...node, sources: [{ element: '', url }] }))?.chain;
  }

  async #loopOf(channel: ChannelNode): Promise<Loop | undefined> {
    const here = this.#finder();
    return await findLoop(channel, async (urls) => [...here(urls), ...(await this.#elsewhere(urls))]);
  }

  /** Asks the other nodes for channels that their files define. */
  async #elsewhere(urls: readonly StreamUrl[]): Promise<ChannelNode[]> {
    const asked = urls.filter(({ vhost, app }) => this.#mayHaveFiles(vhost, app));
    if (asked.length === 0) return [];
    const replies = await this.#options.others.ask(BEHIND, { urls: asked }, ANSWER_MS);
    return replies.flatMap(({ answer }) => answer?.channels ?? []);
  }

  #mayHaveFiles(vhost: string, app: string): boolean {
    const config = this.#options.registry.vhosts.get(vhost)?.applications.get(app)?.config;
    return config !== undefined && CHANNEL_KINDS.some((kind) => kind.hasFiles(config));
  }

  /** Finds channels that this node knows, by their output streams. */
  #finder(isWanted: (name: TaskName) => boolean = () => true): (urls: readonly StreamUrl[]) => ChannelNode[] {
    const known = new Map<string, readonly ChannelNode[]>();
    return (urls) =>
      [...Map.groupBy(urls, ({ vhost, app }) => JSON.stringify([vhost, app]))].flatMap(([key, wanted]) => {
        const [{ vhost, app }] = wanted as [StreamUrl];
        const nodes = known.get(key) ?? this.#nodes(vhost, app, isWanted);
        known.set(key, nodes);
        const streams = new Set(wanted.map(({ stream }) => stream));
        return nodes.filter(({ outputs }) => outputs.some((output) => streams.has(output)));
      });
  }

  #nodes(vhost: string, app: string, isWanted: (name: TaskName) => boolean): ChannelNode[] {
    const { definitions } = this.#options;
    return CHANNEL_KINDS.flatMap((kind: ChannelKind<unknown>) =>
      definitions
        .in(kind.name, { vhost: { name: vhost }, name: app })
        .filter(isWanted)
        .flatMap((name) => this.#known(kind, name)),
    );
  }

  #known<S>(kind: ChannelKind<S>, name: TaskName): ChannelNode[] {
    const definition = this.#options.definitions.get(name);
    if (definition === undefined) return [];
    if (!this.#wirings.has(definition)) {
      const spec = kind.read(definition.spec);
      this.#wirings.set(definition, spec && wiringOf(kind, spec));
    }
    const wiring = this.#wirings.get(definition);
    return wiring === undefined ? [] : [this.#node(name, wiring)];
  }

  #node({ vhost, app, id }: TaskName, { isBypassed, sources }: Wiring): ChannelNode {
    const config = this.#options.registry.vhosts.get(vhost)?.applications.get(app)?.config;
    // the answer of a control server is known only once the stream exists
    const passesProfiles = !isBypassed && config?.transcodeWebhook?.enable !== true;
    const profiles = (passesProfiles && config?.outputProfiles.outputProfile) || [];
    const outputs = [id, ...profiles.map((profile) => outputName(profile, id))];
    return { vhost, app, name: id, outputs, sources };
  }
}

function wiringOf<S>(kind: ChannelKind<S>, spec: S): Wiring {
  return { isBypassed: kind.isBypassed(spec), sources: kind.sources(spec) };
}
