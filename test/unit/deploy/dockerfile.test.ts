import test from 'ava';
import { brokenRules } from '../../support/deploy/dockerfile-rules.ts';
import { validate } from 'dockerfile-utils';
import { read } from './support.ts';

const FILES = ['deploy/Dockerfile', 'deploy/coturn/Dockerfile'];

for (const file of FILES) {
  test(`${file} keeps the rules`, (t) => {
    t.deepEqual(validate(read(file)), []);
    t.deepEqual(brokenRules(read(file)), []);
  });
}

test('each rule for the Dockerfile is broken by an example', (t) => {
  const numbers = (text: string) => brokenRules(text).map((rule) => rule.split(' ')[0]);
  const sound = ['FROM debian:12', 'USER 10001'];
  t.deepEqual(numbers(sound.join('\n')), []);
  const faulty: Readonly<Record<string, string>> = {
    DL3000: 'WORKDIR opt',
    DL3002: 'USER root',
    DL3003: 'RUN cd /opt && make',
    DL3004: 'RUN sudo make',
    'DL3006,': 'FROM debian\nUSER 10001',
    DL3009: 'RUN apt-get update && apt-get install -y --no-install-recommends make',
    DL3011: 'EXPOSE 80-70000',
    DL3014: 'RUN apt-get install --no-install-recommends make',
    DL3015: 'RUN apt-get install -y make',
    DL3020: 'ADD a /b',
    DL3021: 'COPY a b /c',
    DL3022: 'COPY --from=nowhere /a /b',
    DL3024: 'FROM debian:12 AS a\nUSER 1\nFROM debian:12 AS a\nUSER 1',
    DL3025: 'CMD make it',
    DL3027: 'RUN apt update',
    DL3029: 'FROM --platform=linux/amd64 debian:12\nUSER 1',
    DL3045: 'COPY a b',
    'DL3047,': 'RUN curl http://example.com/',
    DL4000: 'MAINTAINER somebody',
    'DL4003,': 'CMD ["a"]\nCMD ["b"]',
    DL4006: 'RUN make | tee log',
  };
  for (const [rule, lines] of Object.entries(faulty)) t.deepEqual(numbers([...sound, lines].join('\n')), [rule], rule);
});
