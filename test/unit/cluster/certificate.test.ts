import { X509Certificate } from 'node:crypto';
import test from 'ava';
import { namesNode } from '../../../cluster/peer/certificate.ts';
import { issue } from '../../support/network/x509.ts';

const of = (name: string): X509Certificate => new X509Certificate(issue(name).cert);

test('a certificate names a node by its common name, or by a DNS name without wildcards', (t) => {
  for (const [name, id, isNamed] of [
    ['node-1', 'node-1', true],
    ['Node 1', 'Node 1', true],
    ['node-1.example', 'NODE-1.example', true],
    ['node-1', 'node-2', false],
    ['node-1.example', 'node-1', false],
    ['*.example', 'a.example', false],
    ['a.example', '.example', false],
    ['a', '127.0.0.1', false],
    ['a', '', false],
  ] as const) {
    t.is(namesNode(of(name), id), isNamed, `${name} ${id}`);
  }
});
