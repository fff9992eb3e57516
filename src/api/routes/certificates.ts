import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import type { CertificateHost, CertificateStore } from '../../tls/certificates.ts';
import { CertificateError } from '../../config/certificate.ts';
import type { Registry } from '../../core/registry.ts';
import { kilnError, type ErrorCode } from '../../errors.ts';
import type { OtherNodes } from '../../peers/other-nodes.ts';
import { done, noPayload } from '../envelope.ts';
import { VhostPath } from '../lookup.ts';
import { API_REQUEST } from '../forwarding/peer-request.ts';

/** Certificates that the API can reload. */
export interface ReloadableCertificates {
  readonly vhosts: CertificateStore;
  /** Reloads the certificate of the API's own port; undefined for a port without TLS. */
  readonly reloadApi?: () => Promise<void>;
}

type Failure = Extract<ErrorCode, 'certificateReloadFailed' | 'apiCertificateFailed'>;
type Log = FastifyRequest['log'];
type Called = Pick<FastifyRequest, 'url' | 'id' | 'host' | 'log'>;

/**
 * Reloads certificates for new connections, on every node. A node that cannot load one keeps the old one and logs the reason;
 * the called node logs which node failed.
 * @param others nodes that reload theirs, too
 */
export function certificateRoutes(
  registry: Registry,
  { vhosts, reloadApi }: ReloadableCertificates,
  others: OtherNodes | undefined,
): FastifyPluginAsyncTypebox {
  return async (app) => {
    const all = { response: noPayload, summary: 'Reload the certificates of all virtual hosts' };
    app.post('/v1/vhosts::reloadAllCertificates', { schema: all }, async (request) => {
      const { log } = request;
      const here = async (): Promise<boolean> => {
        let loaded = true;
        for (const { config } of registry.vhosts.values()) {
          if (!(await attempt(config.name, () => vhosts.load(config), log))) loaded = false;
        }
        return loaded;
      };
      await everywhere(here(), request, 'certificateReloadFailed');
      return done;
    });

    const one = { params: VhostPath, response: noPayload, summary: 'Reload the certificate of a virtual host' };
    app.post('/v1/vhosts/:vhost(^[^:]+$)::reloadCertificate', { schema: one }, async (request) => {
      const { params, log } = request;
      const { config } = registry.vhost(params.vhost);
      await everywhere(
        attempt(config.name, () => reload(vhosts, config), log),
        request,
        'certificateReloadFailed',
      );
      return done;
    });

    const own = { response: noPayload, summary: 'Reload the certificate of the API' };
    app.post('/v1/managers/api::reloadCertificate', { schema: own }, async (request) => {
      if (reloadApi === undefined) throw kilnError('apiTlsDisabled');
      await everywhere(attempt('Managers', reloadApi, request.log), request, 'apiCertificateFailed');
      return done;
    });
  };

  /** @throws `failure` when this node or another could not load its certificate */
  async function everywhere(here: Promise<boolean>, { url, id, host, log }: Called, failure: Failure): Promise<void> {
    const request = { method: 'POST', url, requestId: id, host };
    const [isLoaded, replies] = await Promise.all([here, others?.ask(API_REQUEST, request) ?? []]);
    // apiTlsDisabled: that node has nothing to load
    const failed = replies.filter(({ answer }) => answer?.status !== 200 && answer?.status !== 400);
    for (const { node, answer, error } of failed) {
      log.error(
        { node: node.id, status: answer?.status, reason: error?.message },
        'the certificate was not reloaded on a node: see the log of that node',
      );
    }
    if (!isLoaded || failed.length > 0) throw kilnError(failure);
  }
}

/** @throws CertificateError also when there is nothing to load */
async function reload(vhosts: CertificateStore, config: CertificateHost): Promise<void> {
  if (config.host.tls === undefined) throw new CertificateError('certPath', 'the virtual host has no TLS');
  await vhosts.load(config);
}

/** Loads a certificate. Logs the reason of a failure. */
async function attempt(host: string, load: () => Promise<void>, log: Log): Promise<boolean> {
  try {
    await load();
    return true;
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    log.error({ host, setting: error.key }, `the certificate was not reloaded: ${error.message}`);
    return false;
  }
}
