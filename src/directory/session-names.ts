import Type from 'typebox';
import { joinKey, type Cluster, type NodeIdentity } from '#cluster';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import type { OutputStream } from '../core/output-stream.ts';
import { kilnError } from '../errors.ts';
import { FaultLog, type Logger } from '../log/log.ts';
import type { OtherNodes } from '../peers/other-nodes.ts';
import { definePeerCall, STREAM_FIELDS } from '../peers/peer-call.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import type { StreamDirectory } from './stream-directory.ts';

const SessionName = Type.Object({ ...STREAM_FIELDS, id: Type.String() });
/** Asks the owner of a stream whether a viewer may use a session id; a rejection is thrown. */
const TAKE = definePeerCall('session-names/take', SessionName, Type.Null());
/** Whether a node has a session with an id. */
const HAS = definePeerCall('session-names/has', SessionName, Type.Boolean());
/** Time limit for other nodes to answer whether they have a session, and for the owner of its stream to decide. */
const OTHERS_MS = 1500;
const OWNER_MS = 3000;
/** Time between the owner's permission and the start of the viewer's session. */
const GRANTED_MS = OWNER_MS;
const MAX_GRANTS = 10_000;

export interface SessionNamesOptions {
  readonly registry: Registry;
  readonly cluster: Pick<Cluster, 'self'>;
  readonly directory: Pick<StreamDirectory, 'known'>;
  readonly others: OtherNodes;
  readonly calls: PeerCalls;
  readonly log: Logger;
}

interface Grant {
  /** Incarnation of the viewer's node. */
  readonly node: string;
  /** Expiry by the monotonic clock. */
  readonly until: number;
}

/**
 * Makes sure that each session id from a URL is used once per stream on all nodes, and rejects those that were kicked on any of
 * them. The owner of the stream decides, one request after the other; a node with a relay of it asks the owner.
 */
export class SessionNames {
  readonly #options: SessionNamesOptions;
  readonly #faults: FaultLog;
  /** Recently permitted ids, whose sessions may not exist yet. The oldest come first. */
  readonly #grants = new Map<string, Grant>();

  constructor(options: SessionNamesOptions) {
    this.#options = options;
    this.#faults = new FaultLog(options.log);
    options.calls.answer(TAKE, ({ vhost, app, stream, id }, from) => this.#takeFor(from, vhost, app, stream, id));
    options.calls.answer(HAS, ({ vhost, app, stream, id }) => this.#has(vhost, app, stream, id));
  }

  /**
   * Asks whether a viewer of this node may use an id. If the owner of the stream does not answer, it may, as far as this node
   * knows: the caller has checked that, and checks it again.
   * @throws sessionRefused, sessionExists
   */
  async take(application: Application, { name: output, input }: OutputStream, id: string): Promise<void> {
    const { cluster, directory, others } = this.#options;
    if (application.stream(input.name) !== undefined) return this.#grant(application, input.name, id, cluster.self);
    const location = directory.known(application, output);
    // its publisher has gone
    if (location === undefined) return;
    const request = { vhost: application.vhost.name, app: application.name, stream: input.name, id };
    const { error } = await others.askOne(location.owner, TAKE, request, OWNER_MS);
    if (error?.code === 'sessionRefused' || error?.code === 'sessionExists') throw error;
    if (error !== undefined)
      this.#faults.count(
        `node ${location.owner.id} did not answer whether a session name is in use: the name is accepted`,
      );
  }

  close(): void {
    this.#faults.close();
  }

  async #grant(application: Application, stream: string, id: string, { incarnation }: NodeIdentity): Promise<void> {
    application.checkSession(stream, id);
    const key = joinKey(application.vhost.name, application.name, stream, id);
    const now = performance.now();
    const held = this.#grants.get(key);
    // a node that asks again knows by itself whether its viewer was admitted
    if (held !== undefined && held.until > now && held.node !== incarnation) throw kilnError('sessionExists', id);
    const grant = { node: incarnation, until: now + GRANTED_MS };
    this.#remember(key, grant);
    const request = { vhost: application.vhost.name, app: application.name, stream, id };
    const replies = await this.#options.others.ask(HAS, request, OTHERS_MS);
    if (replies.some(({ answer }) => answer)) {
      if (this.#grants.get(key) === grant) this.#grants.delete(key);
      throw kilnError('sessionExists', id);
    }
    // one that was kicked in between, or was admitted by another publisher module
    application.checkSession(stream, id);
  }

  #remember(key: string, grant: Grant): void {
    this.#grants.delete(key);
    this.#grants.set(key, grant);
    const now = performance.now();
    for (const [oldest, { until }] of this.#grants) {
      if (until > now && this.#grants.size <= MAX_GRANTS) return;
      this.#grants.delete(oldest);
    }
  }

  #has(vhost: string, app: string, stream: string, id: string): boolean {
    const application = this.#options.registry.vhosts.get(vhost)?.applications.get(app);
    return application?.views(stream).some((view) => view.session(id) !== undefined) === true;
  }

  async #takeFor(node: NodeIdentity, vhost: string, app: string, stream: string, id: string): Promise<null> {
    const application = this.#options.registry.vhost(vhost).application(app);
    if (application.stream(stream) === undefined)
      throw kilnError('streamNotFound', `${application.internalName}/${stream}`);
    await this.#grant(application, stream, id, node);
    return null;
  }
}
