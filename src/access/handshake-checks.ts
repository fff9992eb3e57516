import { isEnabled } from '../config/enables.ts';
import { sessionName } from '../core/session.ts';
import type { OutputStream } from '../core/output-stream.ts';
import { kilnError } from '../errors.ts';
import { askGuardsNow, type Guard } from './guard.ts';
import { checkRoom, demandProvider, type Place, type Places } from './places.ts';
import { checkStreamName, publishOptions } from './publisher-grant.ts';
import type { AccessRequest, PlayRequest, PublishRequest } from './request.ts';

export interface HandshakeChecksOptions {
  readonly places: Places;
  readonly guards: readonly Guard[];
  readonly onRejected: (request: AccessRequest, error: unknown) => void;
}

/**
 * Checks that are answered at once, by what this node knows, so that a protocol can reject a client in its handshake. They make
 * nothing; a client that passes them is still to be admitted.
 */
export class HandshakeChecks {
  readonly #options: HandshakeChecksOptions;

  constructor(options: HandshakeChecksOptions) {
    this.#options = options;
  }

  /** Checks a publisher. @throws what Access.admitPublisher() and PublisherGrant.publish() do */
  checkPublisher(request: PublishRequest): void {
    this.#check(request, (place) => {
      const config = demandProvider(request.protocol, place);
      checkStreamName(request.stream);
      const source = { type: 'Unknown', kind: request.protocol } as const;
      place.vhost.applications.get(request.app)?.check(request.stream, source, publishOptions(config));
    });
  }

  /**
   * Checks a publisher that has not named its stream yet: guards decide when it does, and admission webhooks may redirect it to another
   * application then.
   * @throws vhostNotFound, applicationNotFound, providerDisabled
   */
  checkProvider(request: PublishRequest): void {
    this.#reporting(request, () => {
      const vhost = this.#options.places.vhost(request);
      const mayMove = isEnabled(vhost.config.admissionWebhooks?.enables, request);
      if (!mayMove) demandProvider(request.protocol, { vhost, app: request.app });
    });
  }

  /**
   * Checks a viewer.
   * @param look checks an output stream of this node further. @throws KilnError
   * @throws what Access.admitSession() does
   */
  checkViewer(request: PlayRequest, look: (output: OutputStream) => void): void {
    this.#check(request, ({ vhost }) => {
      const application = vhost.applications.get(request.app);
      if (application === undefined) {
        // an origin may have it, for which it is made
        if (vhost.template === undefined) throw kilnError('applicationNotFound', vhost.name, request.app);
        return;
      }
      checkRoom(application, request);
      const output = application.output(request.stream);
      if (output === undefined || output.tracks.length === 0) return;
      look(output);
      const name = sessionName(request.query);
      if (name !== undefined) application.checkSession(output.input.name, name);
    });
  }

  /** @param look is not called where a guard needs time to decide, since it may redirect the client */
  #check(request: AccessRequest, look: (place: Place) => void): void {
    const { places, guards } = this.#options;
    this.#reporting(request, () => {
      const vhost = places.enter(request);
      if (askGuardsNow(guards, request, vhost)) look(places.of(vhost, request, []));
    });
  }

  #reporting(request: AccessRequest, check: () => void): void {
    try {
      check();
    } catch (error) {
      this.#options.onRejected(request, error);
      throw error;
    }
  }
}
