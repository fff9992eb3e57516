import { CertificateError, loadCertificate } from './certificate.ts';
import type { ServerConfig, TlsConfig } from './model.ts';
import type { Path, Problem } from './resolve.ts';

/**
 * What is wrong with the certificates of Server.xml, each tried as it will be used.
 * @param folder what relative paths start from
 */
export async function certificateProblems(config: ServerConfig, folder: string): Promise<Problem[]> {
  const problems: Problem[] = [];
  for (const [path, tls] of certificates(config)) {
    try {
      await loadCertificate(tls, folder);
    } catch (error) {
      if (!(error instanceof CertificateError)) throw error;
      problems.push({ path: [...path, error.key], message: error.message });
    }
  }
  return problems;
}

function* certificates({ managers, virtualHosts }: ServerConfig): Iterable<[path: Path, tls: TlsConfig]> {
  if (managers?.host.tls !== undefined) yield [['managers', 'host', 'tls'], managers.host.tls];
  for (const [index, { host }] of virtualHosts.entries()) {
    if (host.tls !== undefined) yield [['virtualHosts', index, 'host', 'tls'], host.tls];
  }
}
