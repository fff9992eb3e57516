import type { ExecutionContext } from 'ava';
import type { FastifyPluginAsync } from 'fastify';
import { pino } from 'pino';
import { CertificateStore } from '../../../src/tls/certificates.ts';
import { createHttpPort } from '../../../src/web/http-port.ts';
import { CertificateFolder, issue } from './x509.ts';

/** A TLS port for routes, with HTTP/2 and a certificate for `localhost`. Ends with the test. */
export async function openTlsPort(t: ExecutionContext, routes: FastifyPluginAsync): Promise<number> {
  const log = pino({}, { write: () => {} });
  const folder = new CertificateFolder(t);
  const certificates = new CertificateStore({ folder: folder.path, log });
  const tls = folder.write('localhost', issue('localhost'));
  await certificates.load({ name: 'default', host: { names: ['*'], tls } });
  const port = createHttpPort({ log, tls: { certificates, http2: true } });
  await port.app.register(routes);
  const number = await port.listen(['127.0.0.1'], 0);
  t.teardown(() => port.close(0));
  return number;
}
