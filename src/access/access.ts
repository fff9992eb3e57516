import { internalName, type Application } from '../core/application.ts';
import type { FindOutput } from '../core/find-output.ts';
import type { Registry } from '../core/registry.ts';
import { sessionId, sessionName } from '../core/session.ts';
import type { OutputStream } from '../core/output-stream.ts';
import { KilnError, kilnError } from '../errors.ts';
import type { Logger } from '../log/log.ts';
import { Denial } from './denial.ts';
import { combined, Grant, type GrantState } from './grant.ts';
import { askGuards, type Guard } from './guard.ts';
import { HandshakeChecks } from './handshake-checks.ts';
import { limitInCluster, type CountElsewhere } from './connection-limits.ts';
import type { WebhookSessionId, WebhookSessions } from './webhook-session.ts';
import { checkRoom, demandProvider, Places, type Place } from './places.ts';
import { checkStreamName, PublisherGrant, type Names } from './publisher-grant.ts';
import { RefusalCounts, type RefusalReason } from './refusal-counts.ts';
import { refusedOf, RefusalLog, type Refused } from './refusal-log.ts';
import { markOf, Revocations } from './revocations.ts';
import {
  checkPresent,
  type AccessRequest,
  type IncomingProtocol,
  type PlayRequest,
  type PublishRequest,
} from './request.ts';
import { Starting, type StartingElsewhere } from './starting.ts';
import { WaitingOfOne } from './waiting-of-one.ts';

/** Claims names of sessions: each is there once for a stream, in the whole cluster. */
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
  /** In the order in which they decide. */
  readonly guards: readonly Guard[];
  readonly webhookSessions: WebhookSessions;
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
  /** Called in the turn that lists the session: others were admitted since. @throws tooManyConnections, sessionExists, sessionRefused */
  enter(): void;
  /** Ends the grant of a session that could not be opened, and reports the error. */
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
  readonly #places: Places;
  readonly #starting: Starting;
  /** Viewers that wait for a stream that is starting, here or where they play it. */
  readonly waitingOfOne = new WaitingOfOne();
  readonly #refusalLog: RefusalLog;
  /** Clients that were rejected since the start, also by HTTP ports. */
  readonly refusals = new RefusalCounts();
  readonly revocations = new Revocations();
  /** For protocols that can reject a client in the handshake, which cannot wait. */
  readonly duringHandshake: HandshakeChecks;

  constructor(options: AccessOptions) {
    this.#options = options;
    this.#guards = options.guards;
    this.#places = new Places(options.registry);
    this.duringHandshake = new HandshakeChecks({
      places: this.#places,
      guards: options.guards,
      onRejected: (request, error) => this.report(request, error),
    });
    this.#starting = new Starting(options.registry, options.elsewhere, this.waitingOfOne);
    this.#refusalLog = new RefusalLog(options.log.child({ module: 'access' }));
  }

  /** Number of viewers that wait for a stream that is starting. */
  get held(): number {
    return this.#starting.waiting;
  }

  /** Ends the waits for streams. Idempotent. */
  close(): void {
    this.#starting.close();
    this.revocations.close();
    this.#refusalLog.close();
  }

  /**
   * Admits a publisher, before it claims the name of its stream.
   * @throws vhostNotFound, nodeDraining, applicationNotFound, providerDisabled, streamNameInvalid, and what guards throw
   */
  admitPublisher<P extends IncomingProtocol>(request: PublishRequest<P>): Promise<PublisherGrant<P>> {
    return this.#admit(request, (place, grant) => {
      const config = demandProvider(request.protocol, place);
      checkStreamName(place.stream);
      const onRefused = (error: unknown): void => this.report(request, error);
      const { names } = this.#options;
      return new PublisherGrant({ ...place, config, grant, names, signal: request.signal, onRefused });
    });
  }

  /**
   * Admits a viewer. One that comes while the stream is starting waits until it has started.
   * @throws vhostNotFound, applicationNotFound, streamNotFound, tooManyConnections, tooManyWaiting, clientGone, and what
   * guards and `look` throw
   */
  admitViewer<Found>(request: PlayRequest, look: Lookup<Found>): Promise<ViewerGrant<Found>> {
    return this.#admit(request, async ({ vhost, app, stream, playlist }, grant) => {
      const application = (await vhost.viewed(app, stream)) ?? vhost.application(app);
      checkRoom(application, request);
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
        checkRoom(application, request);
      };
      enter();
      if (sessionName(query) !== undefined) await sessionNames.take(application, output, id);
      return { found, enter };
    });
    const { found, enter } = grant.found;
    const refuse = (error: unknown): void => {
      this.report(request, error);
      grant.end((error as Error).message);
    };
    return { ...grant, found, id, enter, refuse };
  }

  /**
   * Logs and counts a client that was rejected outside of its admission: before its request was known, or after it was admitted.
   * @param reason an error of the table, or a text; of any other error, and of clients that have left, nothing is reported
   * @param kind class of a reason that is a text
   */
  report(client: AccessRequest | Refused, reason: unknown, kind: RefusalReason = 'unread'): void {
    const refused = 'client' in client ? refusedOf(client) : client;
    if (typeof reason === 'string') return this.#count(refused, kind, reason);
    if (!(reason instanceof KilnError) || reason.code === 'clientGone') return;
    const { code, message, cause } = reason;
    if (code === 'streamExists' && client.direction === 'incoming' && 'client' in client) this.#duplicate(client);
    // the client of a denied request does not learn the cause
    if (cause instanceof Denial) this.#count(refused, cause.kind, `${message}: ${cause.message}`);
    else this.#count(refused, code, message);
  }

  /** Continues a session that another node has admitted. The caller ends the grant when the session ends. */
  adopt(state: GrantState): Grant {
    const { webhookSessions } = this.#options;
    for (const session of state.openings) webhookSessions.adopt(session);
    return new Grant(state, webhookSessions);
  }

  /**
   * Continues a session of which no more than this is known, since the node that owned it has died.
   * @param until milliseconds since the epoch
   */
  resume(until: number | undefined, ids: readonly WebhookSessionId[]): Grant<WebhookSessionId> {
    const { webhookSessions } = this.#options;
    for (const { id, vhost } of ids) webhookSessions.resume(id, vhost);
    // which guard gave the end is not known: it can only become an earlier one
    const ends = until === undefined ? {} : { until, untilWithout: until };
    return new Grant<WebhookSessionId>({ ...ends, openings: [...ids] }, webhookSessions);
  }

  #count(refused: Refused, kind: RefusalReason, text: string): void {
    this.refusals.add(refused, kind);
    this.#refusalLog.add(refused, text);
  }

  /** Lets the guards decide, and then looks up what the client requests: one that is rejected then has left for the guards. */
  async #admit<T>(request: AccessRequest, find: (place: Place, grant: Grant) => Promise<T> | T): Promise<T> {
    const places = this.#places;
    const { webhookSessions } = this.#options;
    try {
      const vhost = places.enter(request);
      places.limits.count(request, vhost, request.app);
      const verdicts = await askGuards(this.#guards, request, vhost, webhookSessions);
      const marks = [markOf('address', request.client.realAddress)];
      const grant = new Grant(combined([...verdicts, { marks }]), webhookSessions);
      try {
        const place = places.of(vhost, request, verdicts);
        if (place.vhost !== vhost || place.app !== request.app) {
          places.limits.check(request, place.vhost, place.app);
          places.limits.count(request, place.vhost, place.app);
        }
        const names = { vhost: place.vhost.name, app: place.app, stream: place.stream };
        this.revocations.check(grant.marks, names);
        grant.watchedBy(this.revocations, names);
        return await find(place, grant);
      } catch (error) {
        grant.end((error as Error).message);
        throw error;
      }
    } catch (error) {
      this.report(request, error);
      throw error;
    }
  }

  #duplicate(request: AccessRequest): void {
    const vhost = this.#places.vhost(request);
    this.#options.registry.emit('duplicate', internalName(vhost.name, request.app), request.stream);
  }
}
