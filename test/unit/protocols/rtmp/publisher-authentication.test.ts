import test from 'ava';
import { RtmpError } from '../../../../src/protocols/rtmp/error.ts';
import { PublisherAuthentication } from '../../../../src/protocols/rtmp/publisher-authentication.ts';

const REJECT = '[ AccessManager.Reject ] :';
const ADOBE = { user: 'user2020', password: '123456' };
const ADOBE_CHALLENGE = `${REJECT} [ authmod=adobe ] : ?reason=needauth&user=user2020&salt=8wsAAA==&challenge=OzMAAA==&opaque=OzMAAA==`;
const LLNW = { user: 'acme', password: 'go!acme' };

function need(module: string): string {
  return `${REJECT} [ code=403 need auth; authmod=${module} ] : `;
}

test('a user is named, and a challenge answered as ffmpeg answers it', (t) => {
  const authentication = new PublisherAuthentication('live', ADOBE, () => '066fa306');
  t.is(authentication.next(need('adobe')), 'live?authmod=adobe&user=user2020');
  t.is(
    authentication.next(ADOBE_CHALLENGE),
    'live?authmod=adobe&user=user2020&challenge=066fa306&response=2xGzhUDeZ3ggxtA7VdrdEw==&opaque=OzMAAA==',
  );
});

for (const [app, nonce, response] of [
  ['acme', '595a55fc', '6e3ff8b9f0f9dee7cc3ca6d27a62b8ba'],
  ['acme/inst', '4b84e22e', '61556ff844e3a43cf90421e1326c30cc'],
] as const)
  test(`Limelight's digest for ${app} is the one that ffmpeg makes`, (t) => {
    const authentication = new PublisherAuthentication(app, LLNW, () => nonce);
    t.is(authentication.next(need('llnw')), `${app}?authmod=llnw&user=acme`);
    t.is(
      authentication.next(`${REJECT} [ authmod=llnw ] : ?reason=needauth&user=acme&nonce=Z2FyYmFnZQ==`),
      `${app}?authmod=llnw&user=acme&nonce=Z2FyYmFnZQ==&cnonce=${nonce}&nc=00000001&response=${response}`,
    );
  });

test('a query of the application stays', (t) => {
  const authentication = new PublisherAuthentication('live?token=1', { user: 'a&b', password: '' });
  t.is(authentication.next(need('adobe')), 'live?token=1&authmod=adobe&user=a%26b');
});

test('a rejection for another reason is not answered', (t) => {
  const authentication = new PublisherAuthentication('live', ADOBE);
  t.is(authentication.next('the stream is in use'), undefined);
  t.is(authentication.next(`${need('adobe')}${'x'.repeat(4096)}`), undefined);
});

for (const [what, descriptions, message] of [
  ['an unknown module', [need('other')], /does not know: other/],
  [
    'a wrong password',
    [ADOBE_CHALLENGE, `${REJECT} [ authmod=adobe ] : ?reason=authfailed&opaque=1`],
    /rejected the user/,
  ],
  ['an unknown user', [need('adobe'), `${REJECT} [ authmod=adobe ] : ?reason=nosuchuser`], /rejected the user/],
  ['one challenge after the other', [ADOBE_CHALLENGE, ADOBE_CHALLENGE], /rejected the user/],
  ['one question after the other', [need('adobe'), need('adobe')], /again and again/],
] as const)
  test(`RTMP authentication ends after ${what}`, (t) => {
    const authentication = new PublisherAuthentication('live', ADOBE);
    for (const description of descriptions.slice(0, -1)) t.truthy(authentication.next(description));
    t.throws(() => authentication.next(descriptions.at(-1) as string), { instanceOf: RtmpError, message });
  });

test('a challenge without a user and a password gets no answer', (t) => {
  t.throws(() => new PublisherAuthentication('live', undefined).next(need('adobe')), { message: /user:password@host/ });
});
