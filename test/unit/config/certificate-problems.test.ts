import test from 'ava';
import { ConfigError } from '../../../src/config/load.ts';
import { issue } from '../../support/network/x509.ts';
import { load, serverXml } from './support.ts';

const vhost = (name: string, files: string): string =>
  `<VirtualHost><Name>${name}</Name><Host><Names><Name>*</Name></Names>` +
  `<TLS><CertPath>${files}.crt</CertPath><KeyPath>${files}.key</KeyPath></TLS></Host></VirtualHost>`;

test('certificates are read from beside Server.xml', async (t) => {
  const { cert, key } = issue('a.example');
  const files = { 'Server.xml': serverXml({ vhosts: vhost('v', 'tls/own') }), 'tls/own.crt': cert, 'tls/own.key': key };
  t.is((await load(t, files)).config.virtualHosts[0]?.host.tls?.certPath, 'tls/own.crt');
});

test('every certificate that cannot be used is reported, by the file that names it', async (t) => {
  const { cert } = issue('a.example');
  const { key } = issue('other.example');
  const files = {
    'Server.xml': serverXml({ vhosts: `<VirtualHost include="vhosts/*.xml"/>${vhost('second', 'missing')}` }),
    'vhosts/one.xml': vhost('first', 'wrong'),
    'wrong.crt': cert,
    'wrong.key': key,
  };
  const error = await t.throwsAsync(load(t, files), { instanceOf: ConfigError });
  t.deepEqual(error?.message.split('\n'), [
    'DIR/vhosts/one.xml: Server/VirtualHosts/VirtualHost[1]/Host/TLS/KeyPath: ' +
      '"wrong.key" is not the key of the certificate in "wrong.crt"',
    'DIR/Server.xml: Server/VirtualHosts/VirtualHost[2]/Host/TLS/CertPath: "missing.crt" cannot be read: ENOENT',
  ]);
});
