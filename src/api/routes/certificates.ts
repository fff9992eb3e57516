import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import type { CertificateHost, CertificateStore } from '../../access/certificates.ts';
import { CertificateError } from '../../config/certificate.ts';
import type { Registry } from '../../core/registry.ts';
import { kilnError, type ErrorCode } from '../../errors.ts';
import { peerRequest, type OtherNodes } from '../../origins/other-nodes.ts';
import { done, noPayload } from '../envelope.ts';
import { VhostPath } from '../lookup.ts';
import { PEER_API } from '../stream-owner.ts';

/** Certificates that the API can load again. */
export interface ReloadableCertificates {
  readonly vhosts: CertificateStore;
  /** Loads the certificate of the API's own port again; undefined where that port does not speak TLS. */
  readonly reloadApi?: () => Promise<void>;
}

type Failure = Extract<ErrorCode, 'certificateReloadFailed' | 'apiCertificateFailed'>;
type Log = FastifyRequest['log'];

/**
 * New certificates for new connections, on every node. Where one cannot be loaded, the old one stays, the log of that
 * node tells why, and that of the one that was asked which node it is.
 * @param others that load theirs, too
 */
export function certificateRoutes(
  registry: Registry,
  { vhosts, reloadApi }: ReloadableCertificates,
  others: OtherNodes | undefined,
): FastifyPluginAsyncTypebox {
  return async (app) => {
    const all = { response: noPayload, summary: 'Reload the certificates of all virtual hosts' };
    app.post('/v1/vhosts::reloadAllCertificates', { schema: all }, async ({ url, log }) => {
      const here = async (): Promise<boolean> => {
        let loaded = true;
        for (const { config } of registry.vhosts.values()) {
          if (!(await attempt(config.name, () => vhosts.load(config), log))) loaded = false;
        }
        return loaded;
      };
      await everywhere(here(), url, 'certificateReloadFailed', log);
      return done;
    });

    const one = { params: VhostPath, response: noPayload, summary: 'Reload the certificate of a virtual host' };
    app.post('/v1/vhosts/:vhost(^[^:]+$)::reloadCertificate', { schema: one }, async ({ params, url, log }) => {
      const { config } = registry.vhost(params.vhost);
      await everywhere(
        attempt(config.name, () => reload(vhosts, config), log),
        url,
        'certificateReloadFailed',
        log,
      );
      return done;
    });

    const own = { response: noPayload, summary: 'Reload the certificate of the API' };
    app.post('/v1/managers/api::reloadCertificate', { schema: own }, async ({ url, log }) => {
      if (reloadApi === undefined) throw kilnError('apiTlsDisabled');
      await everywhere(attempt('Managers', reloadApi, log), url, 'apiCertificateFailed', log);
      return done;
    });
  };

  /** @throws `failure` when this node or another could not load what it was to */
  async function everywhere(here: Promise<boolean>, url: string, failure: Failure, log: Log): Promise<void> {
    const [isLoaded, replies] = await Promise.all([here, others?.ask(peerRequest('POST', `${PEER_API}${url}`)) ?? []]);
    // apiTlsDisabled: that node has nothing to load
    const failed = replies.filter(({ response }) => response?.status !== 200 && response?.status !== 400);
    for (const { node, response } of failed) {
      log.error(
        { node: node.id, status: response?.status },
        'the certificate was not reloaded on a node: see the log of that node',
      );
    }
    if (!isLoaded || failed.length > 0) throw kilnError(failure);
  }
}

/** @throws CertificateError, also when there is nothing to load */
async function reload(vhosts: CertificateStore, config: CertificateHost): Promise<void> {
  if (config.host.tls === undefined) throw new CertificateError('certPath', 'the virtual host has no TLS');
  await vhosts.load(config);
}

/** Says why in the log when a certificate cannot be loaded. */
async function attempt(host: string, load: () => Promise<void>, log: Log): Promise<boolean> {
  try {
    await load();
    return true;
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    log.error({ host, setting: error.key }, `certificate not reloaded: ${error.message}`);
    return false;
  }
}
