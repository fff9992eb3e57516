import test from 'ava';
import { callOf, payload } from '../../../../src/access/webhooks/payload.ts';
import { publishRequest } from '../../../support/access/access.ts';

test('control servers learn no address with PrivacyProtection', (t) => {
  const { client } = payload(callOf(publishRequest(), true), 'opening', 0);
  t.deepEqual(client, { address: 'xxx.xxx.xxx.xxx', port: 0, real_ip: 'xxx.xxx.xxx.xxx' });
  t.is(payload(callOf(publishRequest()), 'opening', 0).client.address, '192.0.2.1');
});
