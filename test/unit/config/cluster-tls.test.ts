import { X509Certificate } from 'node:crypto';
import test from 'ava';
import { CertificateError } from '../../../src/config/certificate.ts';
import { loadNodeTls, loadRedisTls } from '../../../src/config/cluster-tls.ts';
import { ConfigError } from '../../../src/config/load.ts';
import { CertificateFolder, issue } from '../../support/network/x509.ts';
import { load, serverXml } from './support.ts';

const authority = issue('authority', { authority: true });
const limits = { load: 0, bitrate: 0, viewers: 0 };
const node = { id: 'a.example', port: 7946, drainTimeout: 0, limits };

test('the files of Redis/TLS, each optional', async (t) => {
  const folder = new CertificateFolder(t);
  const { certPath: caCertPath } = folder.write('ca', authority);
  const files = folder.write('client', issue('client', { issuer: authority }));
  t.is(await loadRedisTls(undefined, '/'), undefined);
  t.deepEqual(await loadRedisTls({}, '/'), { ca: undefined });
  const loaded = await loadRedisTls({ caCertPath, ...files }, '/');
  t.is(new X509Certificate(loaded?.ca ?? '').subject, 'CN=authority');
  t.is(new X509Certificate(loaded?.cert ?? '').subject, 'CN=client');
  t.regex(loaded?.key ?? '', /PRIVATE KEY/);
});

test('the certificate of a node has its address among its names, and one of the authorities behind it', async (t) => {
  const folder = new CertificateFolder(t);
  const { certPath: caCertPath } = folder.write('ca', authority);
  const middle = issue('middle', { issuer: authority, authority: true });
  const own = issue('a.example', { issuer: middle });
  const files = folder.write('own', { cert: own.cert + middle.cert, key: own.key });
  const tls = { ...files, caCertPath };
  for (const advertiseAddress of ['a.example', '127.0.0.1']) {
    t.is((await loadNodeTls({ ...node, advertiseAddress, tls }, '/'))?.ca, authority.cert);
  }
  for (const advertiseAddress of ['b.example', '127.0.0.2']) {
    await t.throwsAsync(loadNodeTls({ ...node, advertiseAddress, tls }, '/'), {
      instanceOf: CertificateError,
      message: `"${files.certPath}" is not a certificate for AdvertiseAddress "${advertiseAddress}"`,
    });
  }
  await t.throwsAsync(loadNodeTls({ ...node, id: 'b', advertiseAddress: 'a.example', tls }, '/'), {
    instanceOf: CertificateError,
    message: `"${files.certPath}" does not name Node/Id "b" as its common name or as a DNS name, by which the other nodes know it`,
  });
  t.truthy(
    await loadNodeTls({ ...node, id: 'b', advertiseAddress: 'a.example', tls: files }, '/'),
    'without an authority',
  );
  // of the same name and another key
  const { certPath: stranger } = folder.write('stranger', issue('authority', { authority: true }));
  await t.throwsAsync(
    loadNodeTls({ ...node, advertiseAddress: 'a.example', tls: { ...tls, caCertPath: stranger } }, '/'),
    {
      instanceOf: CertificateError,
      message: `"${stranger}" did not sign the certificate in "${files.certPath}"`,
    },
  );
});

test('files that cannot be used are reported with the element that names them', async (t) => {
  const server = `<Cluster><Secret>s</Secret>
    <Redis><Url>rediss://h</Url><TLS><CACertPath>ca.crt</CACertPath></TLS></Redis>
    <Node><Id>a</Id><AdvertiseAddress>h</AdvertiseAddress><Port>7946</Port>
      <TLS><CertPath>h.crt</CertPath><KeyPath>h.key</KeyPath><CACertPath>ca.key</CACertPath></TLS></Node></Cluster>
    <Managers><Host><Names><Name>*</Name></Names></Host><API><AccessToken>t</AccessToken></API></Managers>`;
  const own = issue('h', { issuer: authority });
  const files = { 'Server.xml': serverXml({ server }), 'h.crt': own.cert, 'h.key': own.key, 'ca.key': authority.key };
  const error = await t.throwsAsync(load(t, files), { instanceOf: ConfigError });
  t.deepEqual(error?.message.split('\n'), [
    'DIR/Server.xml: Server/Cluster/Redis/TLS/CACertPath: "ca.crt" cannot be read: ENOENT',
    'DIR/Server.xml: Server/Cluster/Node/TLS/CACertPath: "ca.key" holds no certificate in PEM form',
  ]);
});
