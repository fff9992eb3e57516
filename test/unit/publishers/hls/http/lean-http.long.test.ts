import test from 'ava';
import { compareWithNode } from '../../../../support/hls/lean-against-node.ts';

test('bytes of all kinds are answered as by node:http: 20,000 requests', (t) => compareWithNode(t, 44, 20_000));
