import test from 'ava';
import { ConfigError } from '../../../src/config/config-error.ts';
import { application, load, profile, serverXml, vhost } from './support.ts';

const ICE = 'Server/Bind/Publishers/WebRTC/IceCandidates/IceCandidate[1]';
const APP = 'Server/VirtualHosts/VirtualHost[1]/Applications/Application[1]';
const PROFILE = `${APP}/OutputProfiles/OutputProfile[1]`;
const MANAGERS = '<Managers><Host><Names><Name>*</Name></Names></Host></Managers>';
const API = '<Managers><API><Port>8081</Port></API></Managers>';

const llhls = (body: string): string =>
  serverXml({ apps: application(`<Publishers><LLHLS>${body}</LLHLS></Publishers>`) });
const CLUSTER =
  '<Cluster><Secret>s</Secret><Redis><Url>redis://127.0.0.1</Url></Redis><Node><Id>a</Id>' +
  '<AdvertiseAddress>10.0.0.1</AdvertiseAddress><Port>7946</Port><AgentCheckPort>7946</AgentCheckPort></Node></Cluster>';
const captions = (inner: string, enable = true) =>
  serverXml({
    apps: application(
      `<Subtitles><Enable>${enable}</Enable><Rendition><Label>en</Label></Rendition></Subtitles>` +
        `<Captions><ToWebVtt>${inner}</ToWebVtt></Captions>`,
    ),
  });
const METRICS = '<Managers><Metrics><Port>9100</Port></Metrics></Managers>';
const rtmp = (port: string): string => `<Providers><RTMP><Port>${port}</Port></RTMP></Providers>`;
const video = (body: string): string => serverXml({ apps: profile('', `<Encodes><Video>${body}</Video></Encodes>`) });
const srt = (body: string): string => serverXml({ bind: `<Providers><SRT><Port>9999</Port>${body}</SRT></Providers>` });
const option = (key: string, value: string): string =>
  srt(`<Options><Option><Key>${key}</Key><Value>${value}</Value></Option></Options>`);
const SRT = 'Server/Bind/Providers/SRT';
const NODE = '<Node><Id>a</Id><AdvertiseAddress>h</AdvertiseAddress><Port>7946</Port></Node>';
const uploadOf = (body: string): string =>
  application(`<Publishers><FILE><Record><Upload>${body}</Upload></Record></FILE></Publishers>`);
const cluster = (body: string): string => serverXml({ server: `<Cluster>${body}${NODE}</Cluster>` });

/** What is wrong, and the first line of the refusal. */
const refusals: Record<string, [xml: string, line: string]> = {
  'no version': ['<Server/>', 'Server/@version: is missing (8 is supported)'],
  'older version': ['<Server version="7"/>', 'Server/@version: "7" is too old: only version 8 is supported'],
  'newer version': ['<Server version="9"/>', 'Server/@version: "9" is too new: only version 8 is supported'],
  'version that is none': ['<Server version="eight"/>', 'Server/@version: "eight" is not a version number'],
  'other root': ['<Logger version="8"/>', 'Logger: the root element must be Server'],
  'a transcode webhook that is on and nowhere': [
    serverXml({ apps: application('<TranscodeWebhook><Enable>true</Enable></TranscodeWebhook>') }),
    `${APP}/TranscodeWebhook/ControlServerUrl: is missing`,
  ],
  'a header that cannot be sent': [
    llhls('<CrossDomains><Url>*</Url><Header><Key>X Frame</Key><Value>1</Value></Header></CrossDomains>'),
    `${APP}/Publishers/LLHLS/CrossDomains/Header[1]/Key: "X Frame" is not a name of an HTTP header`,
  ],
  'a value that cannot be sent': [
    llhls('<CrossDomains><Url>*</Url><Header><Key>X-Frame</Key><Value>\u20ac</Value></Header></CrossDomains>'),
    `${APP}/Publishers/LLHLS/CrossDomains/Header[1]/Value: "\u20ac" is not a value of an HTTP header`,
  ],
  'one of two keys of a storage': [
    serverXml({ apps: uploadOf('<Bucket>b</Bucket><AccessKeyId>k</AccessKeyId>') }),
    `${APP}/Publishers/FILE/Record/Upload/SecretAccessKey: is missing: AccessKeyId is configured`,
  ],
  'the other of two keys of a storage': [
    serverXml({ apps: uploadOf('<Bucket>b</Bucket><SecretAccessKey>k</SecretAccessKey>') }),
    `${APP}/Publishers/FILE/Record/Upload/AccessKeyId: is missing: SecretAccessKey is configured`,
  ],
  'an upload to no bucket': [
    serverXml({ apps: uploadOf('') }),
    `${APP}/Publishers/FILE/Record/Upload/Bucket: is missing`,
  ],
  'networks that are none': [
    serverXml({ apps: application('<Limits><Allow>10.0.0.0/33</Allow></Limits>') }),
    `${APP}/Limits/Allow: "10.0.0.0/33" is not a comma list of networks, such as 10.0.0.0/8,::1`,
  ],
  'a transcode webhook that waits too long': [
    serverXml({ apps: application('<TranscodeWebhook><Timeout>600001</Timeout></TranscodeWebhook>') }),
    `${APP}/TranscodeWebhook/Timeout: 600001 is not an integer (1..600000)`,
  ],
  'a public URL of more than a host': [
    serverXml({
      server: CLUSTER.replace('<AgentCheckPort>7946</AgentCheckPort>', '<PublicUrl>https://a.example/kiln</PublicUrl>'),
    }),
    'Server/Cluster/Node/PublicUrl: "https://a.example/kiln" is not an http or https URL of a host alone, such as https://node-1.example.com:3334',
  ],
  'no type': ['<Server version="8"><IP>*</IP></Server>', 'Server/Type: is missing'],
  'wrong type': [serverXml().replace('origin', 'relay'), 'Server/Type: "relay" is not one of origin, edge'],
  'no address': [serverXml().replace('<IP>*</IP>', ''), 'Server/IP: is missing'],
  'wrong address': [
    serverXml().replace('<IP>*</IP>', '<IP>any</IP>'),
    'Server/IP[1]: "any" is not *, :: or an IP address',
  ],
  'no bind': ['<Server version="8"><Type>origin</Type><IP>*</IP></Server>', 'Server/Bind: is missing'],
  'port in letters': [
    serverXml({ bind: rtmp('abc') }),
    'Server/Bind/Providers/RTMP/Port: "abc" is not a port (1..65535)',
  ],
  'port 0': [serverXml({ bind: rtmp('0') }), 'Server/Bind/Providers/RTMP/Port: "0" is not a port (1..65535)'],
  'port 65536': [
    serverXml({ bind: rtmp('65536') }),
    'Server/Bind/Providers/RTMP/Port: "65536" is not a port (1..65535)',
  ],
  'empty port': [serverXml({ bind: rtmp('') }), 'Server/Bind/Providers/RTMP/Port: "" is not a port (1..65535)'],
  'port of the other transport': [
    serverXml({ bind: rtmp('1935/udp') }),
    'Server/Bind/Providers/RTMP/Port: "1935/udp" is not a port (1..65535)',
  ],
  'port list': [
    serverXml({ bind: '<Providers><SRT><Port>9999,x</Port></SRT></Providers>' }),
    'Server/Bind/Providers/SRT/Port: "9999,x" is not a list of ports (1..65535), such as 4000-4003,4005',
  ],
  'backward range': [
    serverXml({ bind: '<Providers><MPEGTS><Port>4003-4000/udp</Port></MPEGTS></Providers>' }),
    'Server/Bind/Providers/MPEGTS/Port: "4003-4000/udp" is not a list of ports (1..65535), such as 4000-4003,239.1.2.3:5000',
  ],
  'ICE candidate without protocol': [
    serverXml({
      bind:
        '<Publishers><WebRTC><Signalling><Port>3333</Port></Signalling>' +
        '<IceCandidates><IceCandidate>*:10000</IceCandidate></IceCandidates></WebRTC></Publishers>',
    }),
    `${ICE}: "*:10000" is not an ICE candidate (IP:port[-port]/udp|tcp)`,
  ],
  'port given twice to RTMP and the API': [
    serverXml({ bind: `<Managers><API><Port>1935</Port></API></Managers>${rtmp('1935')}`, server: MANAGERS }),
    'Server/Bind/Providers/RTMP/Port: "1935" is also the TCP port of Server/Bind/Managers/API/Port',
  ],
  'a port of the metrics that RTMP has': [
    serverXml({ bind: `${METRICS}${rtmp('9100')}` }),
    'Server/Bind/Providers/RTMP/Port: "9100" is also the TCP port of Server/Bind/Managers/Metrics/Port',
  ],
  'a port for agent checks that the node itself has': [
    serverXml({ server: CLUSTER }),
    'Server/Cluster/Node/AgentCheckPort: "7946" is also the TCP port of Server/Cluster/Node/Port',
  ],
  'HTTP and HTTPS on one port': [
    serverXml({
      bind: '<Publishers><LLHLS><Port>3333</Port></LLHLS><HLS><TLSPort>3333</TLSPort></HLS></Publishers>',
    }),
    'Server/Bind/Publishers/HLS/TLSPort: "3333" is also the TCP port of Server/Bind/Publishers/LLHLS/Port',
  ],
  'RTMP to publish and RTMPS to play on one port': [
    serverXml({ bind: `${rtmp('1935')}<Publishers><RTMP><TLSPort>1935</TLSPort></RTMP></Publishers>` }),
    'Server/Bind/Publishers/RTMP/TLSPort: "1935" is also the TCP port of Server/Bind/Providers/RTMP/Port',
  ],
  'SRT in and out on one port': [
    serverXml({
      bind:
        '<Providers><SRT><Port>9999</Port></SRT></Providers>' +
        '<Publishers><SRT><Port>9990-9999</Port></SRT></Publishers>',
    }),
    'Server/Bind/Publishers/SRT/Port: "9999" is also the UDP port of Server/Bind/Providers/SRT/Port',
  ],
  'a socket option that SRT does not have': [
    option('SRTO_LATENCI', '1'),
    `${SRT}/Options/Option[1]/Key: "SRTO_LATENCI" is not a socket option of SRT`,
  ],
  'a socket option that the server decides': [
    option('SRTO_RCVSYN', 'true'),
    `${SRT}/Options/Option[1]/Key: "SRTO_RCVSYN" cannot be set here: the server or the caller decides it`,
  ],
  'a socket option that is out of range': [
    option('SRTO_PBKEYLEN', '17'),
    `${SRT}/Options/Option[1]/Value: is not one of 0, 16, 24, 32, as SRTO_PBKEYLEN requires`,
  ],
  'a passphrase that is too short, without telling it': [
    option('SRTO_PASSPHRASE', 'secret'),
    `${SRT}/Options/Option[1]/Value: is not a text of 10 to 79 bytes, as SRTO_PASSPHRASE requires`,
  ],
  'a stream of a port that is not listened on': [
    srt('<StreamMap><Stream><Port>9998</Port><StreamPath>default/app/stream</StreamPath></Stream></StreamMap>'),
    `${SRT}/StreamMap/Stream[1]/Port: "9998" is not one of the ports in Port`,
  ],
  'captions of a channel that there is not': [
    captions('<Channel>CC5</Channel><Label>en</Label>'),
    `${APP}/Captions/ToWebVtt[1]/Channel: "CC5" is not one of CC1 to CC4, SERVICE1 to SERVICE63, TEXT, and TEXT with a language, as in TEXT-eng`,
  ],
  'captions in subtitles that there are not': [
    captions('<Channel>CC1</Channel><Label>ko</Label>'),
    `${APP}/Captions/ToWebVtt[1]/Label: "ko" is not a Label of Subtitles`,
  ],
  'captions in subtitles that are off': [
    captions('<Channel>SERVICE63</Channel><Label>en</Label>', false),
    `${APP}/Captions/ToWebVtt[1]/Label: "en" is not a Label of Subtitles`,
  ],
  'two streams of one port': [
    srt(
      `<StreamMap>${'<Stream><Port>9999</Port><StreamPath>default/app/stream</StreamPath></Stream>'.repeat(2)}</StreamMap>`,
    ),
    `${SRT}/StreamMap/Stream[2]/Port: "9999" is given twice`,
  ],
  'a stream path of two parts': [
    srt('<StreamMap><Stream><Port>9999</Port><StreamPath>app/stream</StreamPath></Stream></StreamMap>'),
    `${SRT}/StreamMap/Stream[1]/StreamPath: "app/stream" is not a path of host/application/stream`,
  ],
  'RTMP inside the TCP range of ICE': [
    serverXml({
      bind:
        `${rtmp('10002')}<Publishers><WebRTC><Signalling><Port>3333</Port></Signalling>` +
        '<IceCandidates><IceCandidate>*:10000-10004/tcp</IceCandidate></IceCandidates></WebRTC></Publishers>',
    }),
    `${ICE}: "10002" is also the TCP port of Server/Bind/Providers/RTMP/Port`,
  ],
  'the API without managers': [
    serverXml({ bind: API }),
    'Server/Managers: is missing: Bind/Managers/API is configured',
  ],
  'the API with TLS and no certificate': [
    serverXml({ bind: '<Managers><API><TLSPort>8082</TLSPort></API></Managers>', server: MANAGERS }),
    'Server/Managers/Host/TLS: is missing: Bind/Managers/API/TLSPort is configured',
  ],
  boolean: [
    serverXml({ server: '<PrivacyProtection>maybe</PrivacyProtection>' }),
    'Server/PrivacyProtection: "maybe" is not true or false',
  ],
  networks: [
    serverXml({ server: '<Modules><ProxyProtocol><Networks>10.0.0.0/33</Networks></ProxyProtocol></Modules>' }),
    'Server/Modules/ProxyProtocol/Networks: "10.0.0.0/33" is not a comma list of networks, such as 10.0.0.0/8,::1',
  ],
  'element given twice': [serverXml({ server: '<Name>a</Name><Name>b</Name>' }), 'Server/Name: is given twice'],
  'vhost without name': [
    serverXml({ vhosts: '<VirtualHost><Host><Names><Name>*</Name></Names></Host></VirtualHost>' }),
    'Server/VirtualHosts/VirtualHost[1]/Name: is missing',
  ],
  'vhost with an empty name': [
    serverXml({ vhosts: vhost('', '') }),
    'Server/VirtualHosts/VirtualHost[1]/Name: "" is not a name (text without / and :)',
  ],
  'vhost with a name that no URL of the API reaches': [
    serverXml({ vhosts: vhost('', 'a/b') }),
    'Server/VirtualHosts/VirtualHost[1]/Name: "a/b" is not a name (text without / and :)',
  ],
  'application with a name that reads as an action': [
    serverXml({ apps: application('', 'app:records') }),
    `${APP}/Name: "app:records" is not a name (text without / and :)`,
  ],
  'profile with a name that no URL of the API reaches': [
    serverXml({ apps: profile('').replace('<Name>p<', '<Name>p/q<') }),
    `${PROFILE}/Name: "p/q" is not a name (text without / and :)`,
  ],
  'address twice': [
    serverXml().replace('<IP>*</IP>', '<IP>*</IP><IP>0.0.0.0</IP>'),
    'Server/IP[2]: "0.0.0.0" is already covered by "*"',
  ],
  'vhost without host names': [
    serverXml({ vhosts: '<VirtualHost><Name>a</Name><Host/></VirtualHost>' }),
    'Server/VirtualHosts/VirtualHost[1]/Host/Names: is missing',
  ],
  'vhost name twice': [
    serverXml({ vhosts: vhost() + vhost() }),
    'Server/VirtualHosts/VirtualHost[2]/Name: "default" is given twice',
  ],
  'address beside all of its kind': [
    serverXml().replace('<IP>*</IP>', '<IP>::1</IP><IP>127.0.0.1</IP><IP>::</IP>'),
    'Server/IP[1]: "::1" is already covered by "::"',
  ],
  'application name twice': [
    serverXml({ apps: application() + application() }),
    'Server/VirtualHosts/VirtualHost[1]/Applications/Application[2]/Name: "app" is given twice',
  ],
  'application type': [
    serverXml({ apps: application().replace('live', 'tape') }),
    `${APP}/Type: "tape" is not supported: only live is`,
  ],
  'application type that OvenMediaEngine takes': [
    serverXml({ apps: application().replace('live', 'vod') }),
    `${APP}/Type: "vod" is not supported: only live is`,
  ],
  'signed policy without key': [
    serverXml({
      vhosts: vhost(
        '<SignedPolicy><PolicyQueryKeyName>p</PolicyQueryKeyName>' +
          '<SignatureQueryKeyName>s</SignatureQueryKeyName></SignedPolicy>',
      ),
    }),
    'Server/VirtualHosts/VirtualHost[1]/SignedPolicy/SecretKey: is missing',
  ],
  'webhook URL': [
    serverXml({ vhosts: vhost('<AdmissionWebhooks><ControlServerUrl>ftp://x</ControlServerUrl></AdmissionWebhooks>') }),
    'Server/VirtualHosts/VirtualHost[1]/AdmissionWebhooks/ControlServerUrl: "ftp://x" is not an http or https URL, or several with commas between them',
  ],
  'rechecks too often': [
    serverXml({
      vhosts: vhost(
        '<AdmissionWebhooks><ControlServerUrl>http://x/</ControlServerUrl><RecheckInterval>999</RecheckInterval></AdmissionWebhooks>',
      ),
    }),
    'Server/VirtualHosts/VirtualHost[1]/AdmissionWebhooks/RecheckInterval: is 0, or 1000 at least',
  ],
  'origin without URL': [
    serverXml({
      vhosts: vhost(
        '<Origins><Origin><Location>/a</Location><Pass><Scheme>ovt</Scheme><Urls/></Pass></Origin></Origins>',
      ),
    }),
    'Server/VirtualHosts/VirtualHost[1]/Origins/Origin[1]/Pass/Urls/Url: is missing',
  ],
  'provider option': [
    serverXml({ apps: application('<Providers><RTMP><TimestampMode>Now</TimestampMode></RTMP></Providers>') }),
    `${APP}/Providers/RTMP/TimestampMode: "Now" is not one of Auto, ZeroBased, Original`,
  ],
  'negative count': [
    serverXml({ apps: application('<Providers><RTMP><MaxConnection>-1</MaxConnection></RTMP></Providers>') }),
    `${APP}/Providers/RTMP/MaxConnection: -1 is not an integer of at least 0`,
  ],
  'fraction for an integer': [
    llhls('<SegmentCount>4.5</SegmentCount>'),
    `${APP}/Publishers/LLHLS/SegmentCount: 4.5 is not an integer (3..10000)`,
  ],
  'two segments': [
    llhls('<SegmentCount>2</SegmentCount>'),
    `${APP}/Publishers/LLHLS/SegmentCount: 2 is not an integer (3..10000)`,
  ],
  'chunk longer than segment': [
    llhls('<ChunkDuration>3</ChunkDuration><SegmentDuration>2</SegmentDuration>'),
    `${APP}/Publishers/LLHLS/ChunkDuration: 3 is longer than SegmentDuration, 2`,
  ],
  'playout delay backward': [
    serverXml({
      apps: application(
        '<Publishers><WebRTC><PlayoutDelay><Min>5</Min><Max>4</Max></PlayoutDelay></WebRTC></Publishers>',
      ),
    }),
    `${APP}/Publishers/WebRTC/PlayoutDelay/Min: 5 is more than Max, 4`,
  ],
  'playout delay too long': [
    serverXml({
      apps: application('<Publishers><WebRTC><PlayoutDelay><Max>40951</Max></PlayoutDelay></WebRTC></Publishers>'),
    }),
    `${APP}/Publishers/WebRTC/PlayoutDelay/Max: 40951 is not an integer (0..40950)`,
  ],
  'profile name twice': [
    serverXml({ apps: profile('').replace(/<OutputProfile>.*<\/OutputProfile>/, '$&$&') }),
    `${APP}/OutputProfiles/OutputProfile[2]/Name: "p" is given twice`,
  ],
  'profile without encodes': [serverXml({ apps: profile('', '') }), `${PROFILE}/Encodes: is missing`],
  'encode without codec': [
    video('<Bitrate>1M</Bitrate>'),
    `${PROFILE}/Encodes/Video[1]/Codec: is missing (Bypass is not set)`,
  ],
  'encode without bitrate': [
    video('<Codec>h264</Codec>'),
    `${PROFILE}/Encodes/Video[1]/Bitrate: is missing (Bypass is not set)`,
  ],
  'bitrate 0': [
    video('<Codec>h264</Codec><Bitrate>0</Bitrate>'),
    `${PROFILE}/Encodes/Video[1]/Bitrate: 0 is not a bitrate (above 0, K or M may follow)`,
  ],
  'bitrate unit': [
    video('<Codec>h264</Codec><Bitrate>1G</Bitrate>'),
    `${PROFILE}/Encodes/Video[1]/Bitrate: "1G" is not a bitrate (above 0, K or M may follow)`,
  ],
  'key-frame interval in frames': [
    video('<Bypass>true</Bypass><KeyFrameInterval>601</KeyFrameInterval>'),
    `${PROFILE}/Encodes/Video[1]/KeyFrameInterval: 601 is not an integer (0..600)`,
  ],
  'key-frame interval in time': [
    video(
      '<Bypass>true</Bypass><KeyFrameIntervalType>TIME</KeyFrameIntervalType>' +
        '<KeyFrameInterval>10001</KeyFrameInterval>',
    ),
    `${PROFILE}/Encodes/Video[1]/KeyFrameInterval: 10001 is not an integer (0..10000)`,
  ],
  'B-frames': [
    video('<Bypass>true</Bypass><BFrames>17</BFrames>'),
    `${PROFILE}/Encodes/Video[1]/BFrames: 17 is not an integer (0..16)`,
  ],
  'skipped frames': [
    video('<Bypass>true</Bypass><SkipFrames>121</SkipFrames>'),
    `${PROFILE}/Encodes/Video[1]/SkipFrames: 121 is not an integer (-1..120)`,
  ],
  'bypass rule': [
    video('<Bypass>true</Bypass><BypassIfMatch><Codec>lte</Codec></BypassIfMatch>'),
    `${PROFILE}/Encodes/Video[1]/BypassIfMatch/Codec: "lte" is not eq`,
  ],
  'bitrate as bypass rule': [
    video('<Bypass>true</Bypass><BypassIfMatch><Bitrate>eq</Bitrate></BypassIfMatch>'),
    `${PROFILE}/Encodes/Video[1]/BypassIfMatch/Bitrate: "eq" is not allowed: a bitrate cannot be matched`,
  ],
  'an output stream that no URL can name': [
    serverXml({ apps: profile('').replace('>${OriginStreamName}<', '>a/${OriginStreamName}<') }),
    `${PROFILE}/OutputStreamName: "a/\${OriginStreamName}" is not a name of a stream (without / \\ : ? # %, of at most 255 characters)`,
  ],
  'an output stream that is a step in a path': [
    serverXml({ apps: profile('').replace('>${OriginStreamName}<', '>..<') }),
    `${PROFILE}/OutputStreamName: ".." is not a name of a stream (without / \\ : ? # %, of at most 255 characters)`,
  ],
  'a playlist with what cannot be seen in its name': [
    serverXml({ apps: profile('<Playlist><FileName>a&#x200B;b</FileName></Playlist>') }),
    `${PROFILE}/Playlist[1]/FileName: "a\u200bb" is not a file name without "playlist" and "chunklist"`,
  ],
  'playlist without file name': [
    serverXml({ apps: profile('<Playlist><Name>a</Name></Playlist>') }),
    `${PROFILE}/Playlist[1]/FileName: is missing`,
  ],
  'playlist called playlist': [
    serverXml({ apps: profile('<Playlist><FileName>my_playlist</FileName></Playlist>') }),
    `${PROFILE}/Playlist[1]/FileName: "my_playlist" is not a file name without "playlist" and "chunklist"`,
  ],
  'playlist outside': [
    serverXml({ apps: profile('<Playlist><FileName>../x</FileName></Playlist>') }),
    `${PROFILE}/Playlist[1]/FileName: "../x" is not a file name without "playlist" and "chunklist"`,
  ],
  'playlist file name twice': [
    serverXml({ apps: profile('<Playlist><FileName>a</FileName></Playlist>'.repeat(2)) }),
    `${PROFILE}/Playlist[2]/FileName: "a" is given twice`,
  ],
  'empty track set': [
    serverXml({ apps: profile('<TrackSet><Name>t</Name></TrackSet>') }),
    `${PROFILE}/TrackSet[1]: names no track`,
  ],
  'cluster without secret': [cluster('<Redis><Url>redis://h:1</Url></Redis>'), 'Server/Cluster/Secret: is missing'],
  'cluster with an empty secret': [
    cluster('<Secret>${env:KILN_NO_SUCH_VARIABLE}</Secret><Redis><Url>redis://h:1</Url></Redis>'),
    'Server/Cluster/Secret: "" is not a text of at least one character (the environment variable KILN_NO_SUCH_VARIABLE is not set)',
  ],
  'a flag that a variable should have set': [
    serverXml({ server: '<Modules><HTTP2><Enable>${env:KILN_NO_SUCH_VARIABLE}</Enable></HTTP2></Modules>' }),
    'Server/Modules/HTTP2/Enable: "" is not true or false (the environment variable KILN_NO_SUCH_VARIABLE is not set)',
  ],
  'cluster without Redis': [cluster('<Secret>s</Secret>'), 'Server/Cluster/Redis: is missing'],
  'cluster with an empty Redis': [
    cluster('<Secret>s</Secret><Redis/>'),
    'Server/Cluster/Redis: needs Url, Sentinels or Cluster',
  ],
  'cluster with two kinds of Redis': [
    cluster('<Secret>s</Secret><Redis><Url>redis://h:1</Url><Cluster><Endpoint>h:1</Endpoint></Cluster></Redis>'),
    'Server/Cluster/Redis: allows only one of Url, Sentinels and Cluster',
  ],
  'cluster with a sentinel that is no address': [
    cluster('<Secret>s</Secret><Redis><Sentinels><Sentinel>h</Sentinel></Sentinels></Redis>'),
    'Server/Cluster/Redis/Sentinels/Sentinel[1]: "h" is not a host:port',
  ],
  'cluster with TLS for a Redis without': [
    cluster('<Secret>s</Secret><Redis><Url>Redis://h:1</Url><TLS/></Redis>'),
    'Server/Cluster/Redis/TLS: needs a Url that begins with rediss://',
  ],
  'cluster with a certificate without its key': [
    cluster('<Secret>s</Secret><Redis><Url>rediss://h:1</Url><TLS><CertPath>a.crt</CertPath></TLS></Redis>'),
    'Server/Cluster/Redis/TLS: needs both CertPath and KeyPath, or neither',
  ],
  'cluster that drains for longer than a day': [
    cluster('<Secret>s</Secret><Redis><Url>redis://h:1</Url></Redis>').replace(
      '</Node>',
      '<DrainTimeout>86400001</DrainTimeout></Node>',
    ),
    'Server/Cluster/Node/DrainTimeout: 86400001 is not an integer (0..86400000)',
  ],
  'cluster with another database': [
    cluster('<Secret>s</Secret><Redis><Url>http://h:1</Url></Redis>'),
    'Server/Cluster/Redis/Url: "http://h:1" is not a redis:// or rediss:// URL',
  ],
};

for (const [name, [xml, line]] of Object.entries(refusals)) {
  test(`a configuration is rejected: ${name}`, async (t) => {
    const error = await t.throwsAsync(load(t, xml), { instanceOf: ConfigError });
    t.is(error?.message.split('\n')[0], `DIR/Server.xml: ${line}`);
  });
}

test('a cluster needs an access token of its own', async (t) => {
  const alone = cluster('<Secret>s</Secret><Redis><Url>redis://h</Url></Redis>');
  await t.throwsAsync(load(t, alone), {
    message: 'DIR/Server.xml: Server/Managers: is missing: a cluster needs an access token',
  });
  const body = `<Cluster><Secret>s</Secret><Redis><Url>redis://h</Url></Redis>${NODE}</Cluster>${MANAGERS}`;
  const error = await t.throwsAsync(load(t, serverXml({ bind: API, server: body })), { instanceOf: ConfigError });
  t.is(
    error?.message,
    'DIR/Server.xml: Server/Managers/API/AccessToken: is empty: a cluster needs one, the same on every node',
  );
});

test('every problem gets a line', async (t) => {
  const xml = serverXml({ bind: rtmp('abc'), server: '<PrivacyProtection>7</PrivacyProtection>' });
  const error = await t.throwsAsync(load(t, xml), { instanceOf: ConfigError });
  t.is((error as ConfigError).lines.length, 2);
});
