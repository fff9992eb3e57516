import { EventEmitter } from 'node:events';
import type { VirtualHostConfig } from '../config/model.ts';
import { kilnError } from '../errors.ts';
import type { Application } from './application.ts';
import { Counters, type PublisherKind } from './counters.ts';
import type { InputStream } from './input-stream.ts';
import type { OutputStream } from './output-stream.ts';
import { VirtualHost } from './vhost.ts';

interface RegistryEvents {
  /** A source has taken the name of an input stream. */
  created: [input: InputStream, application: Application];
  /** An input stream knows its tracks: outputs can be made. */
  input: [input: InputStream, application: Application];
  /** An output stream, or the relay of one, is complete: publishers can attach. */
  output: [output: OutputStream, application: Application];
  /** Viewers come for files of another node's output stream. */
  filesViewed: [output: OutputStream, application: Application];
  /** An output stream was made; publishers do not see it yet. */
  outputCreated: [output: OutputStream, application: Application];
  /** A publisher could not have the name of a stream, which is in use. */
  duplicate: [application: string, stream: string];
  /** The playlists of an output stream have their first segments, so all players can begin. */
  packaged: [output: OutputStream, application: Application, kind: PublisherKind];
  /** A source got a name, its output streams were made, or it has ended: what is to come of it is another. */
  starting: [application: Application, input: InputStream];
  /** A virtual host was deleted: its streams have ended. */
  vhostClosed: [vhost: VirtualHost];
  /** Whether sources get names has changed. */
  draining: [draining: boolean];
  /** Something an operator should know of. */
  alert: [alert: Alert];
}

/** A problem of a stream, or its end. */
export interface AlertMessage {
  /** Code of docs/alerts.md, or `OK` (docs/compatibility.md#alerts). */
  readonly code: string;
  readonly description: string;
}

export interface Alert {
  readonly application: Application;
  /** The input or output stream that it is about; undefined where there is none. */
  readonly stream: InputStream | OutputStream | undefined;
  /** Its name. */
  readonly name: string;
  readonly type: 'INGRESS' | 'EGRESS' | 'INTERNAL_QUEUE';
  /** All that is wrong with the stream at present, as far as these messages belong together; never empty. */
  readonly messages: readonly AlertMessage[];
  /** The problem is gone. */
  readonly resolved?: boolean;
  /** The congested queues, as the management API shows them. */
  readonly queues?: readonly object[];
}

/** Parts of a server that follow its streams, each with one listener: more is a leak. */
const MAX_LISTENERS = 32;

/** All virtual hosts of this node, and the place where streams are announced. */
export class Registry extends EventEmitter<RegistryEvents> {
  readonly counters = new Counters();
  /** Makes the application of a stream that viewers ask for and an origin has; undefined when none has it. */
  demand: (vhost: VirtualHost, app: string, stream: string) => Promise<Application | undefined> = async () => undefined;
  readonly #vhosts = new Map<string, VirtualHost>();
  #draining = false;

  constructor() {
    super();
    this.setMaxListeners(MAX_LISTENERS);
  }

  /** No source gets a name any more; those that have one go on. */
  get draining(): boolean {
    return this.#draining;
  }

  set draining(draining: boolean) {
    if (draining === this.#draining) return;
    this.#draining = draining;
    this.emit('draining', draining);
  }

  /** Bytes that this node has sent to viewers and other servers, those that another node counts included. */
  get sentBytes(): number {
    const {
      out: { totalBytes },
      viewing: { sentForOthers, sentByOthers },
    } = this.counters;
    return totalBytes + sentForOthers - sentByOthers;
  }

  get vhosts(): ReadonlyMap<string, VirtualHost> {
    return this.#vhosts;
  }

  /** @throws vhostNotFound */
  vhost(name: string): VirtualHost {
    const vhost = this.#vhosts.get(name);
    if (vhost === undefined) throw kilnError('vhostNotFound', name);
    return vhost;
  }

  /** The first virtual host, in order of creation, that answers to a host name (without port). */
  resolve(hostName: string): VirtualHost | undefined {
    for (const vhost of this.#vhosts.values()) if (vhost.answersTo(hostName)) return vhost;
    return undefined;
  }

  /**
   * @param revision of its stored configuration
   * @throws vhostExists, applicationExists
   */
  createVhost(config: VirtualHostConfig, isStatic: boolean, revision = 0): VirtualHost {
    if (this.#vhosts.has(config.name)) throw kilnError('vhostExists', config.name);
    const vhost = new VirtualHost(this, config, isStatic, revision);
    this.#vhosts.set(config.name, vhost);
    return vhost;
  }

  /** @throws vhostNotFound */
  deleteVhost(name: string, reason: string): void {
    const vhost = this.vhost(name);
    this.#vhosts.delete(name);
    vhost.close(reason);
    this.emit('vhostClosed', vhost);
  }

  /** The node stops: what streams here may go on elsewhere. */
  close(reason: string): void {
    for (const vhost of this.#vhosts.values()) vhost.close(reason, { continued: true });
    this.removeAllListeners();
  }
}
