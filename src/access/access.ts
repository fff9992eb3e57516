import { internalName, type Application } from '../core/application.ts';
import type { FindOutput } from '../core/find-output.ts';
import { isStreamName } from '../core/names.ts';
import type { Registry } from '../core/registry.ts';
import { sessionId, sessionName } from '../core/session.ts';
import type { OutputStream } from '../core/stream.ts';
import type { VirtualHost } from '../core/vhost.ts';
import { KilnError, kilnError } from '../errors.ts';
import type { Logger } from '../log/log.ts';
import { Denial } from './denial.ts';
import { isEnabled } from '../config/enables.ts';
import { combined, Grant, type GrantState } from './grant.ts';
import { askGuards, askGuardsNow, type Guard, type Verdict } from './guard.ts';
import { limitConnections, limitInCluster, type CountElsewhere } from './connection-limits.ts';
import { Limits } from './limits.ts';
import type { OpeningId, Openings } from './opening.ts';
import { publishOptions, PublisherGrant, type Names, type ProviderConfig } from './publisher-grant.ts';
import { RefusalCounts, type RefusalReason } from './refusal-counts.ts';
import { RefusalLog, type Refused } from './refusal-log.ts';
import {
  checkPresent,
  PROTOCOL_NAMES,
  publisherConfig,
  type AccessRequest,
  type IncomingProtocol,
  type PlayRequest,
  type PublishRequest,
  type Target,
} from './request.ts';
import { Starting, type StartingElsewhere } from './starting.ts';
import { WaitingOfOne } from './waiting-of-one.ts';

/** Of what a client asks for, that much is logged, in characters. */
const MAX_ASKED = 300;

/** How a client is admitted. */
interface Place extends Omit<Target, 'hostName'> {
  readonly vhost: VirtualHost;
}

/** Lets each name of a session be there once for a stream, in the whole cluster. */
export interface SessionNameGiver {
  /** @throws sessionRefused, sessionExists */
  take(application: Application, output: OutputStream, id: string): Promise<void>;
}

export interface AccessOptions {
  readonly registry: Registry;
  readonly names: Names;
  readonly sessionNames: SessionNameGiver;
  /** Finds output streams that are not on this node. */
  readonly find: FindOutput;
  readonly elsewhere: StartingElsewhere;
  readonly countElsewhere: CountElsewhere;
  /** Who decides about clients, in this order. */
  readonly guards: readonly Guard[];
  readonly openings: Openings;
  readonly log: Logger;
}

/** An admitted viewer. The holder ends it when the viewer leaves. */
export interface ViewerGrant<Found> extends Pick<Grant, 'until' | 'limit' | 'end' | 'handOver'> {
  readonly application: Application;
  /** Names that it plays: a guard may have replaced the requested ones. */
  readonly stream: string;
  readonly playlist: string | undefined;
  readonly found: Found;
}

/** A viewer whose session is to be listed on an output stream. */
export interface SessionGrant<Found> extends ViewerGrant<Found> {
  readonly id: string;
  /** Called in the turn that lists the session: others came in meanwhile. @throws tooManyConnections, sessionExists, sessionRefused */
  enter(): void;
  /** The session could not be opened: what is an error of the table is logged like any other refusal. */
  refuse(error: unknown): void;
}

/** Looks closer at an output stream that was found. */
export type Accept<Found> = (
  output: OutputStream,
  application: Application,
  playlist: string | undefined,
) => Found | undefined;

/**
 * Looks for what a viewer asks for. Undefined: there is none, or it is only starting.
 * @param grant ends when the viewer is not admitted after all
 * @throws KilnError
 */
export type Lookup<Found> = (
  application: Application,
  stream: string,
  playlist: string | undefined,
  grant: Grant,
) => Promise<Found | undefined> | Found | undefined;

/**
 * Admits every publisher and every viewer, whatever its protocol. What this server fetches itself
 * (pulled streams, relays of other nodes' streams) does not pass here.
 */
export class Access {
  readonly #options: AccessOptions;
  readonly #guards: readonly Guard[];
  readonly #limits = new Limits();
  readonly #starting: Starting;
  /** Viewers that wait for a stream that is starting, here or where it is played. */
  readonly waitingOfOne = new WaitingOfOne();
  readonly #refusalLog: RefusalLog;
  /** Clients that were refused since the start, also by HTTP ports. */
  readonly refusals = new RefusalCounts();

  constructor(options: AccessOptions) {
    this.#options = options;
    this.#guards = options.guards;
    this.#starting = new Starting(options.registry, options.elsewhere, this.waitingOfOne);
    this.#refusalLog = new RefusalLog(options.log.child({ module: 'access' }));
  }

  /** How many viewers wait for a stream that is starting. */
  get held(): number {
    return this.#starting.waiting;
  }

  /** Ends the waits for streams. Idempotent. */
  close(): void {
    this.#starting.close();
    this.#refusalLog.close();
  }

  /**
   * Admits a publisher, before it claims the name of its stream.
   * @throws vhostNotFound, nodeDraining, applicationNotFound, providerDisabled, streamNameInvalid, and what guards throw
   */
  admitPublisher<P extends IncomingProtocol>(request: PublishRequest<P>): Promise<PublisherGrant<P>> {
    return this.#admit(request, (place, grant) => {
      const config = this.#provider(request.protocol, place);
      checkName(place.stream);
      const onRefused = (error: unknown): void => this.#log(request, error);
      const { names } = this.#options;
      return new PublisherGrant({ ...place, config, grant, names, signal: request.signal, onRefused });
    });
  }

  /**
   * What can be told of a publisher at once: a handshake waits for it. Nothing is made.
   * @throws what `admitPublisher` and PublisherGrant.publish() do
   */
  checkPublisher(request: PublishRequest): void {
    this.#check(request, (place) => {
      const config = this.#provider(request.protocol, place);
      checkName(request.stream);
      const source = { type: 'Unknown', kind: request.protocol } as const;
      place.vhost.applications.get(request.app)?.check(request.stream, source, publishOptions(config));
    });
  }

  /**
   * What can be told of a publisher that has not said yet which stream it brings: guards decide about that one, and where
   * admission webhooks are asked, they may send it to another application.
   * @throws vhostNotFound, applicationNotFound, providerDisabled
   */
  checkProvider(request: PublishRequest): void {
    try {
      const vhost = this.#vhost(request);
      if (!isEnabled(vhost.config.admissionWebhooks?.enables, request))
        this.#provider(request.protocol, { ...request, vhost });
    } catch (error) {
      this.#log(request, error);
      throw error;
    }
  }

  /**
   * Admits a viewer. One that comes while the stream is starting waits until it has started.
   * @throws vhostNotFound, applicationNotFound, streamNotFound, tooManyConnections, tooManyWaiting, clientGone, and what
   * guards and `look` throw
   */
  admitViewer<Found>(request: PlayRequest, look: Lookup<Found>): Promise<ViewerGrant<Found>> {
    return this.#admit(request, async ({ vhost, app, stream, playlist }, grant) => {
      const application = (await vhost.viewed(app, stream)) ?? vhost.application(app);
      this.#checkRoom(application, request);
      await limitInCluster(application, request.protocol, this.#options.countElsewhere);
      checkPresent(request.signal);
      let found = await look(application, stream, playlist, grant);
      if (found === undefined && (await this.#starting.wait(application, stream, request)))
        found = await look(application, stream, playlist, grant);
      checkPresent(request.signal);
      if (found === undefined) throw kilnError('streamNotFound', `${application.internalName}/${stream}`);
      return {
        application,
        stream,
        playlist,
        found,
        until: grant.until,
        limit: (close) => grant.limit(close),
        end: (reason) => grant.end(reason),
        handOver: () => grant.handOver(),
      };
    });
  }

  /**
   * Admits a viewer of an output stream, under the session that its URL names, or a new one.
   * @param accept looks closer at what was found, before the session's name is taken; undefined where it is none after
   * all. @throws KilnError
   * @throws what `admitViewer` does, sessionExists, sessionRefused
   */
  async admitSession<Found>(request: PlayRequest, accept: Accept<Found>): Promise<SessionGrant<Found>> {
    const { find, sessionNames } = this.#options;
    const { query } = request;
    const id = sessionId(query);
    const grant = await this.admitViewer(request, async (application, stream, playlist) => {
      const output = application.output(stream) ?? (await find(application, stream, query));
      checkPresent(request.signal);
      if (output === undefined || output.closed || output.tracks.length === 0) return undefined;
      const found = accept(output, application, playlist);
      if (found === undefined) return undefined;
      const enter = (): void => {
        application.checkSession(output.input.name, id);
        this.#checkRoom(application, request);
      };
      enter();
      if (sessionName(query) !== undefined) await sessionNames.take(application, output, id);
      return { found, enter };
    });
    const { found, enter } = grant.found;
    const refuse = (error: unknown): void => {
      this.#log(request, error);
      grant.end((error as Error).message);
    };
    return { ...grant, found, id, enter, refuse };
  }

  /**
   * What can be told of a viewer at once: a handshake waits for it.
   * @param look looks at what is here; @throws KilnError
   * @throws what `admitSession` does
   */
  checkViewer(request: PlayRequest, look: (output: OutputStream) => void): void {
    this.#check(request, ({ vhost }) => {
      const application = vhost.applications.get(request.app);
      if (application === undefined) {
        // an origin may have it, for which it is made
        if (vhost.template === undefined) throw kilnError('applicationNotFound', vhost.name, request.app);
        return;
      }
      this.#checkRoom(application, request);
      const output = application.output(request.stream);
      if (output === undefined || output.tracks.length === 0) return;
      look(output);
      const name = sessionName(request.query);
      if (name !== undefined) application.checkSession(output.input.name, name);
    });
  }

  /** Logs a client that was rejected before it was to be admitted: for an error of the table. */
  rejected(request: AccessRequest, error: KilnError): void {
    this.#log(request, error);
  }

  /** Goes on with a session that another node has admitted. The caller ends the grant when the session ends. */
  adopt(state: GrantState): Grant {
    const { openings } = this.#options;
    for (const opening of state.openings) openings.adopt(opening);
    return new Grant(state, openings);
  }

  /**
   * The same where no more is known of the session than this, as after the node that had it has died.
   * @param until milliseconds since the epoch
   */
  resume(until: number | undefined, ids: readonly OpeningId[]): Grant<OpeningId> {
    const { openings } = this.#options;
    for (const { id, vhost } of ids) openings.resume(id, vhost);
    return new Grant<OpeningId>({ ...(until !== undefined && { until }), openings: [...ids] }, openings);
  }

  /** Logs a client that was rejected before its request was known, or after it was admitted. */
  refused(refused: Refused, reason: string, kind: RefusalReason = 'unread'): void {
    this.#refuse(refused, kind, reason);
  }

  #refuse(refused: Refused, reason: RefusalReason, text: string): void {
    this.refusals.add(refused, reason);
    this.#refusalLog.add(refused, text);
  }

  /** Lets the guards decide, and then whether there is what the client asks for: who is refused then has ended for them. */
  async #admit<T>(request: AccessRequest, find: (place: Place, grant: Grant) => Promise<T> | T): Promise<T> {
    try {
      const vhost = this.#vhost(request);
      this.#checkDrain(request);
      this.#limit(request, vhost, request.app);
      const verdicts = await askGuards(this.#guards, request, vhost, this.#options.openings);
      const grant = new Grant(combined(verdicts), this.#options.openings);
      try {
        const place = this.#place(vhost, request, verdicts);
        if (place.vhost !== vhost || place.app !== request.app) this.#limit(request, place.vhost, place.app);
        return await find(place, grant);
      } catch (error) {
        grant.end((error as Error).message);
        throw error;
      }
    } catch (error) {
      this.#log(request, error);
      throw error;
    }
  }

  #limit(request: AccessRequest, vhost: VirtualHost, app: string): void {
    this.#limits.check(request, vhost, app);
    this.#limits.count(request, vhost, app);
  }

  /** @param look is called unless a guard has to be waited for, which may send the client elsewhere */
  #check(request: AccessRequest, look: (place: Place) => void): void {
    try {
      const vhost = this.#vhost(request);
      this.#checkDrain(request);
      this.#limits.check(request, vhost, request.app);
      if (askGuardsNow(this.#guards, request, vhost)) look(this.#place(vhost, request, []));
    } catch (error) {
      this.#log(request, error);
      throw error;
    }
  }

  #vhost({ vhostName, hostName }: Pick<AccessRequest, 'vhostName' | 'hostName'>): VirtualHost {
    const { registry } = this.#options;
    const named = vhostName === undefined ? undefined : registry.vhosts.get(vhostName);
    const vhost = named ?? registry.resolve(hostName);
    if (vhost === undefined) throw kilnError('vhostNotFound', hostName);
    return vhost;
  }

  #place(vhost: VirtualHost, { app, stream, playlist }: AccessRequest, verdicts: readonly Verdict[]): Place {
    const { hostName, ...names } = Object.assign({}, ...verdicts.map(({ target }) => target)) as Partial<Target>;
    return { app, stream, playlist, ...names, vhost: hostName === undefined ? vhost : this.#vhost({ hostName }) };
  }

  #checkDrain({ direction }: AccessRequest): void {
    if (direction === 'incoming' && this.#options.registry.draining) throw kilnError('nodeDraining');
  }

  #provider<P extends IncomingProtocol>(protocol: P, { vhost, app }: Place): ProviderConfig<P> {
    const config = vhost.demandConfig(app).providers[protocol];
    if (config === undefined)
      throw kilnError('providerDisabled', PROTOCOL_NAMES[protocol], internalName(vhost.name, app));
    return config as ProviderConfig<P>;
  }

  /** An application whose publisher is off has nothing for viewers. */
  #checkRoom(application: Application, { protocol, stream }: PlayRequest): void {
    if (publisherConfig(application.config, protocol) === undefined)
      throw kilnError('streamNotFound', `${application.internalName}/${stream}`);
    limitConnections(application, protocol);
  }

  #duplicate(request: AccessRequest): void {
    const { registry } = this.#options;
    registry.emit('duplicate', internalName(this.#vhost(request).name, request.app), request.stream);
  }

  #log(request: AccessRequest, error: unknown): void {
    if (!(error instanceof KilnError) || error.code === 'clientGone') return;
    const { direction, protocol, client, vhostName, hostName, app, stream, playlist } = request;
    if (error.code === 'streamExists' && direction === 'incoming') this.#duplicate(request);
    const asked = [vhostName ?? hostName, app, stream, ...(playlist === undefined ? [] : [playlist])].join('/');
    const { realAddress: address, address: direct, port } = client;
    const refused = {
      direction,
      protocol,
      address,
      asked: asked.slice(0, MAX_ASKED),
      ...(address === direct && { port }),
    };
    const { cause } = error;
    // of who is denied only the operator knows why
    if (cause instanceof Denial) this.#refuse(refused, cause.kind, `${error.message}: ${cause.message}`);
    else this.#refuse(refused, error.code, error.message);
  }
}

function checkName(stream: string): void {
  if (!isStreamName(stream)) throw kilnError('streamNameInvalid', stream.slice(0, 80));
}
