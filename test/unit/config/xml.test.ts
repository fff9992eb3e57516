import { join } from 'node:path';
import test from 'ava';
import { ConfigError } from '../../../src/config/config-error.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { parseXml, readXml } from '../../../src/config/xml.ts';
import { application, load, serverXml, vhost } from './support.ts';

const refused = (xml: string): string => {
  try {
    parseXml(xml, 'x.xml');
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return 'taken';
};

test('elements, attributes, entities, comments and CDATA', (t) => {
  const xml =
    '\ufeff<?xml version="1.0"?><!-- <!DOCTYPE --><A x="1&lt;2"> a&amp;&#66;&#x43;<B/>' +
    '<![CDATA[<!DOCTYPE &amp;]]></A>';
  t.like(parseXml(xml, 'f'), {
    name: 'A',
    file: 'f',
    attributes: { x: '1<2' },
    text: 'a&BC<!DOCTYPE &amp;',
    children: [{ name: 'B', text: '', children: [] }],
  });
});

test('malformed XML is refused with its line', (t) => {
  t.regex(refused('<A>\n<B>\n</A>'), /^x\.xml:3: .*B/);
  t.regex(refused('<A'), /^x\.xml:1: /);
  t.regex(refused(''), /^x\.xml:1: /);
  t.regex(refused('no element'), /^x\.xml:1: /);
  t.is(refused('<A/><B/>'), 'x.xml: needs one root element');
});

test('document types and what they bring are refused', (t) => {
  const bomb = '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><a>&b;</a>';
  t.is(refused(bomb), 'x.xml: a document type is not allowed');
  t.is(refused('<!doctype a SYSTEM "file:///etc/passwd"><a/>'), 'x.xml: a document type is not allowed');
});

test('large malformed files take no longer than large good ones', (t) => {
  for (const junk of ['<!--', '<![CDATA[', '<a ', '</a>', '&amp;', '<!', '<?x ', '${env:']) {
    t.regex(refused(`<A>${junk.repeat(250_000)}`), /^x\.xml/);
  }
});

test('deep nesting and reserved names are refused', (t) => {
  t.regex(refused('<a>'.repeat(1000) + '</a>'.repeat(1000)), /^x\.xml: /);
  t.regex(refused('<a><__proto__>1</__proto__></a>'), /^x\.xml: /);
  t.is(({} as Record<string, unknown>)['polluted'], undefined);
});

test('files that are missing, too big or not UTF-8', async (t) => {
  const absent = join(import.meta.dirname, 'none.xml');
  t.throws(() => readXml(absent), { instanceOf: ConfigError, message: /none\.xml: ENOENT/ });
  await t.throwsAsync(load(t, `<Server>${' '.repeat(5 * 1024 * 1024)}</Server>`), { message: /larger than/ });
  await t.throwsAsync(loadConfig(process.execPath, { env: {} }), { instanceOf: ConfigError });
});

test('unknown elements and attributes warn once, with their path', async (t) => {
  const apps = application('<Providers><RTMP><Colour>red</Colour><Colour>blue</Colour></RTMP><Zoom/></Providers>');
  const { warnings } = await load(t, serverXml({ apps, server: '<Name lang="en">x<B/></Name>' }));
  const at = 'DIR/Server.xml: Server/VirtualHosts/VirtualHost[1]/Applications/Application[1]/Providers';
  t.deepEqual(warnings, [
    'DIR/Server.xml: Server/Name/@lang: is unknown and has no effect',
    'DIR/Server.xml: Server/Name: unknown element B at line 1 has no effect',
    `${at}/RTMP: unknown element Colour at line 1 has no effect`,
    `${at}: unknown element Zoom at line 1 has no effect`,
  ]);
});

test('a mistyped element is reported with its line, also in an included file, and with what was meant', async (t) => {
  const files = {
    'Server.xml': serverXml({ vhosts: '\n\n<VirtualHost include="v.xml"/>', server: '\n<Manager/>' }),
    'v.xml': vhost('<!-- a\ncomment -->\n<Aplications>\n</Aplications><![CDATA[\n\n]]>\n<SinedPolicy/>'),
  };
  const { warnings } = await load(t, files);
  const vhostAt = 'DIR/v.xml: Server/VirtualHosts/VirtualHost[1]';
  t.deepEqual(warnings, [
    'DIR/Server.xml: Server: unknown element Manager at line 2: did you mean Managers?',
    `${vhostAt}: unknown element Aplications at line 3: did you mean Applications?`,
    `${vhostAt}: unknown element SinedPolicy at line 7: did you mean SignedPolicy?`,
  ]);
});

test('an element that is missing because of a mistyped name is followed by that name', async (t) => {
  const apps = '<Application>\n<Nmae>app</Nmae><Type>live</Type></Application>';
  const error = await t.throwsAsync(load(t, serverXml({ apps })), { instanceOf: ConfigError });
  const at = 'DIR/Server.xml: Server/VirtualHosts/VirtualHost[1]/Applications/Application[1]';
  t.deepEqual(error?.message.split('\n'), [
    `${at}/Name: is missing`,
    `${at}: unknown element Nmae at line 2: did you mean Name?`,
  ]);
});

test('an empty flag is set', async (t) => {
  const rules = '<Alert><Url>http://h/</Url><Rules><Ingress><HasBFrames/></Ingress></Rules></Alert>';
  const { config } = await load(t, serverXml({ server: rules }));
  t.like(config.alert?.rules?.ingress, { hasBFrames: true, longKeyFrameInterval: false });
});

test('text where elements belong warns: a value that lacks its element is not passed over in silence', async (t) => {
  const { config, warnings } = await load(
    t,
    serverXml({
      bind: '<Providers><RTMP>1935</RTMP></Providers>',
      server: '<Modules><ERTMP> true </ERTMP></Modules>',
      vhosts: '<VirtualHost><Name>a</Name><Host><Names>*<Name>*</Name></Names></Host></VirtualHost>',
    }),
  );
  t.false(config.modules.ertmp.enable);
  t.deepEqual(warnings, [
    'DIR/Server.xml: Server/Bind/Providers/RTMP: has text, which has no effect: elements belong here',
    'DIR/Server.xml: Server/Modules/ERTMP: has text, which has no effect: elements belong here',
    'DIR/Server.xml: Server/VirtualHosts/VirtualHost[1]/Host/Names: has text, which has no effect: elements belong here',
  ]);
});

test('elements without a use here warn and mean nothing', async (t) => {
  const apps = application('<HWAccels><Decoder/></HWAccels>');
  const { config, warnings } = await load(t, serverXml({ apps, server: '<Analytics><A/></Analytics>' }));
  t.deepEqual(warnings, [
    'DIR/Server.xml: Server/Analytics: has no effect',
    'DIR/Server.xml: Server/VirtualHosts/VirtualHost[1]/Applications/Application[1]/HWAccels: has no effect',
  ]);
  t.false('hwaccels' in (config.virtualHosts[0]?.applications[0] ?? {}));
});

test('includes, in the order of names, nested, relative to their file', async (t) => {
  const { config, warnings } = await load(
    t,
    {
      'Server.xml': serverXml({ vhosts: '<VirtualHost include="${env:HOSTS}/*.xml"/>' }),
      'hosts/b.xml': vhost('<Applications><Application include="apps/x.xml"/></Applications>', 'b'),
      'hosts/a.xml': vhost('', '${env:NAME:a}'),
      'hosts/apps/x.xml': application('', 'x'),
    },
    { HOSTS: 'hosts' },
  );
  t.deepEqual(
    config.virtualHosts.map(({ name }) => name),
    ['a', 'b'],
  );
  t.is(config.virtualHosts[1]?.applications[0]?.name, 'x');
  t.deepEqual(warnings, []);
});

test('a problem in an included file names that file', async (t) => {
  const files = {
    'Server.xml': serverXml({ vhosts: '<VirtualHost include="v.xml"/>' }),
    'v.xml': vhost('<Distribution></Distribution>').replace('default', ''),
  };
  const error = await t.throwsAsync(load(t, files), { instanceOf: ConfigError });
  t.regex(error?.message ?? '', /^DIR\/v\.xml: Server\/VirtualHosts\/VirtualHost\[1\]\/Name: ""/);
});

test('includes that match nothing warn; wrong roots and circles are refused', async (t) => {
  const include = serverXml({ vhosts: '<VirtualHost include="v.xml"/>' });
  const { warnings, config } = await load(t, include);
  t.deepEqual(warnings, ['DIR/Server.xml: no file matches include="v.xml" of VirtualHost']);
  t.deepEqual(config.virtualHosts, []);
  await t.throwsAsync(load(t, { 'Server.xml': include, 'v.xml': application() }), {
    message: 'DIR/v.xml: the root element is "Application", included as "VirtualHost"',
  });
  const circle = '<VirtualHost><VirtualHost include="v.xml"/></VirtualHost>';
  await t.throwsAsync(load(t, { 'Server.xml': include, 'v.xml': circle }), {
    message: /includes are nested deeper than 8/,
  });
});

test('environment macros, with and without default; other macros stay', async (t) => {
  const server = '<Name>${env:A}-${env:B:fall back}-${env:C:}-${env:D}-${OriginStreamName}</Name>';
  const { config } = await load(t, serverXml({ server }), { A: '${env:B}', D: '<&>' });
  t.is(config.name, '${env:B}-fall back--<&>-${OriginStreamName}');
});
