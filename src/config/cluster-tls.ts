import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { namesNode } from '#cluster';
import { CertificateError, loadAuthorities, loadCertificate } from './certificate.ts';
import type { ClusterConfig } from './model.ts';

interface Authorities {
  /** PEM of the authorities to trust instead of the well-known ones. */
  readonly ca?: string;
}

/**
 * Reads the files of Cluster/Redis/TLS; undefined without such an element.
 * @param folder base of relative paths
 * @throws CertificateError
 */
export async function loadRedisTls(
  tls: ClusterConfig['redis']['tls'],
  folder: string,
): Promise<(Authorities & { readonly cert?: string; readonly key?: string }) | undefined> {
  if (tls === undefined) return undefined;
  const { caCertPath, certPath, keyPath } = tls;
  const ca = caCertPath === undefined ? undefined : pem(await loadAuthorities(caCertPath, folder));
  if (certPath === undefined || keyPath === undefined) return { ca };
  const { cert, key } = await loadCertificate({ certPath, keyPath }, folder);
  return { ca, cert, key };
}

/**
 * Reads the files of Cluster/Node/TLS; undefined without such an element. Rejects what the other nodes would reject: a
 * certificate of another name or node, or of an authority that they do not trust.
 */
export async function loadNodeTls(
  { id, tls, advertiseAddress }: ClusterConfig['node'],
  folder: string,
): Promise<(Authorities & { readonly cert: string; readonly key: string }) | undefined> {
  if (tls === undefined) return undefined;
  const { caCertPath, certPath } = tls;
  const { leaf, cert, key, chain } = await loadCertificate(tls, folder);
  const named = isIP(advertiseAddress) === 0 ? leaf.checkHost(advertiseAddress) : leaf.checkIP(advertiseAddress);
  if (named === undefined) {
    throw new CertificateError(
      'certPath',
      `"${certPath}" is not a certificate for AdvertiseAddress "${advertiseAddress}"`,
    );
  }
  if (caCertPath === undefined) return { cert, key };
  const authorities = await loadAuthorities(caCertPath, folder);
  if (
    !authorities.some((authority) => chain.some((one) => one.checkIssued(authority) && one.verify(authority.publicKey)))
  ) {
    throw new CertificateError('caCertPath', `"${caCertPath}" did not sign the certificate in "${certPath}"`);
  }
  if (!namesNode(leaf, id)) {
    throw new CertificateError(
      'certPath',
      `"${certPath}" does not name Node/Id "${id}" as its common name or as a DNS name, by which the other nodes know it`,
    );
  }
  return { ca: pem(authorities), cert, key };
}

function pem(certificates: readonly X509Certificate[]): string {
  return certificates.map((certificate) => certificate.toString()).join('');
}
