import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import type { CertificateHost, CertificateStore } from '../../access/certificates.ts';
import { CertificateError } from '../../config/certificate.ts';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import { done, noPayload } from '../envelope.ts';
import { VhostPath } from '../lookup.ts';

export interface ReloadableCertificates {
  readonly vhosts: CertificateStore;
  /** Loads the certificate of the API's own port again; undefined where that port does not speak TLS. */
  readonly reloadApi?: () => Promise<void>;
}

/** New certificates for new connections. Where one cannot be loaded, the old one stays and the log tells why. */
export function certificateRoutes(
  registry: Registry,
  { vhosts, reloadApi }: ReloadableCertificates,
): FastifyPluginAsyncTypebox {
  return async (app) => {
    const all = { response: noPayload, summary: 'Reload the certificates of all virtual hosts' };
    app.post('/v1/vhosts::reloadAllCertificates', { schema: all }, async ({ log }) => {
      let failed = false;
      for (const { config } of registry.vhosts.values()) {
        if (!(await attempt(config.name, () => vhosts.load(config), log))) failed = true;
      }
      if (failed) throw kilnError('certificateReloadFailed');
      return done;
    });

    const one = { params: VhostPath, response: noPayload, summary: 'Reload the certificate of a virtual host' };
    app.post('/v1/vhosts/:vhost(^[^:]+$)::reloadCertificate', { schema: one }, async ({ params, log }) => {
      const { config } = registry.vhost(params.vhost);
      if (!(await attempt(config.name, () => reload(vhosts, config), log))) throw kilnError('certificateReloadFailed');
      return done;
    });

    const own = { response: noPayload, summary: 'Reload the certificate of the API' };
    app.post('/v1/managers/api::reloadCertificate', { schema: own }, async ({ log }) => {
      if (reloadApi === undefined) throw kilnError('apiTlsDisabled');
      if (!(await attempt('Managers', reloadApi, log))) throw kilnError('apiCertificateFailed');
      return done;
    });
  };
}

/** @throws CertificateError, also when there is nothing to load */
async function reload(vhosts: CertificateStore, config: CertificateHost): Promise<void> {
  if (config.host.tls === undefined) throw new CertificateError('certPath', 'the virtual host has no TLS');
  await vhosts.load(config);
}

/** Says why in the log when a certificate cannot be loaded. */
async function attempt(host: string, load: () => Promise<void>, log: FastifyRequest['log']): Promise<boolean> {
  try {
    await load();
    return true;
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    log.error({ host, setting: error.key }, `certificate not reloaded: ${error.message}`);
    return false;
  }
}
