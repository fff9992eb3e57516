import { CertificateError, loadCertificate } from './certificate.ts';
import { loadNodeTls, loadRedisTls } from './cluster-tls.ts';
import type { ServerConfig } from './model.ts';
import type { Path, Problem } from './resolve.ts';

/** Faults of the certificates in Server.xml, each loaded as it will be used. @param folder base of relative paths */
export async function certificateProblems(config: ServerConfig, folder: string): Promise<Problem[]> {
  const problems: Problem[] = [];
  for (const [path, load] of certificates(config, folder)) {
    try {
      await load();
    } catch (error) {
      if (!(error instanceof CertificateError)) throw error;
      problems.push({ path: [...path, error.key], message: error.message });
    }
  }
  return problems;
}

type Load = () => Promise<unknown>;

function* certificates(
  { managers, virtualHosts, cluster }: ServerConfig,
  folder: string,
): Iterable<[path: Path, load: Load]> {
  const tls = managers?.host.tls;
  if (tls !== undefined) yield [['managers', 'host', 'tls'], () => loadCertificate(tls, folder)];
  for (const [index, { host }] of virtualHosts.entries()) {
    const own = host.tls;
    if (own !== undefined) yield [['virtualHosts', index, 'host', 'tls'], () => loadCertificate(own, folder)];
  }
  if (cluster === undefined) return;
  yield [['cluster', 'redis', 'tls'], () => loadRedisTls(cluster.redis.tls, folder)];
  yield [['cluster', 'node', 'tls'], () => loadNodeTls(cluster.node, folder)];
}
