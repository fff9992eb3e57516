import test from 'ava';
import { load } from './support.ts';

const HTTP = '<Port>3333</Port><TLSPort>3334</TLSPort><WorkerCount>1</WorkerCount>';
const SIGNALLING = `<Signalling>${HTTP}</Signalling>`;
const ICE = `<IceCandidates><IceCandidate>*:10000/udp</IceCandidate><TcpRelay>*:3478</TcpRelay>
  <TcpRelayForce>false</TcpRelayForce><EnableLinkLocalAddress>false</EnableLinkLocalAddress>
  <IceWorkerCount>1</IceWorkerCount><TcpIceWorkerCount>1</TcpIceWorkerCount><TcpRelayWorkerCount>1</TcpRelayWorkerCount>
  <DefaultTransport>udptcp</DefaultTransport></IceCandidates>
  <IceServers><IceServer><Urls><Url>turn:turn.example.com:3478?transport=tcp</Url></Urls>
  <UserName>u</UserName><Credential>c</Credential></IceServer></IceServers>`;
const OLD_ICE = ICE.replaceAll('TcpRelayForce', 'TcpForce');
const CROSS_DOMAINS = '<CrossDomains><Url>*</Url><Header><Key>k</Key><Value>v</Value></Header></CrossDomains>';
const INGEST = '<MaxConnection>0</MaxConnection><TimestampMode>Auto</TimestampMode>';
const SILENCE = '<PacketSilenceTimeoutMs>1500</PacketSilenceTimeoutMs>';
const AUDIO_MAP = `<AudioMap><Item><Name>n</Name><Language>en</Language>
  <Characteristics>public.accessibility.describes-video</Characteristics></Item></AudioMap>`;
const EGRESS = `<AppWorkerCount>1</AppWorkerCount><StreamWorkerCount>8</StreamWorkerCount>
  <DelayBufferTimeMs>0</DelayBufferTimeMs><MaxConnection>0</MaxConnection>`;
const STREAM_MAP = '<StreamMap><Enable>false</Enable><Path>path</Path></StreamMap>';
const HLS = `${EGRESS}<SegmentDuration>6</SegmentDuration><SegmentCount>10</SegmentCount><OriginMode>true</OriginMode>
  <ServerTimeBasedSegmentNumbering>false</ServerTimeBasedSegmentNumbering>
  <CreateDefaultPlaylist>true</CreateDefaultPlaylist>
  <DVR><Enable>false</Enable><TempStoragePath>/tmp/dvr</TempStoragePath><MaxDuration>3600</MaxDuration>
  <EventPlaylistType>false</EventPlaylistType></DVR>
  <CacheControl><MasterPlaylistMaxAge>0</MasterPlaylistMaxAge><ChunklistMaxAge>0</ChunklistMaxAge>
  <ChunklistWithDirectivesMaxAge>60</ChunklistWithDirectivesMaxAge><SegmentMaxAge>-1</SegmentMaxAge>
  <PartialSegmentMaxAge>-1</PartialSegmentMaxAge></CacheControl>
  <DefaultQueryString><Query><Key>k</Key><Value>v</Value></Query></DefaultQueryString>
  <Dumps><Dump><Id>d</Id><Enable>false</Enable><TargetStreamName>s*</TargetStreamName>
  <Playlists><Playlist>llhls.m3u8</Playlist></Playlists><OutputPath>/tmp/dump</OutputPath></Dump></Dumps>${CROSS_DOMAINS}`;
const RANGE = (name: string) => `<Min${name}>1</Min${name}><Max${name}>2</Max${name}>`;

/** Every element of OvenMediaEngine's configuration, beside those of its old versions (docs/compatibility.md#configuration). */
const EVERYTHING = `<?xml version="1.0" encoding="UTF-8"?>
<Server version="8">
  <Name>OvenMediaEngine</Name><Type>origin</Type><IP>*</IP><StunServer>127.0.0.1:19302</StunServer>
  <PrivacyProtection>false</PrivacyProtection>
  <Modules>
    <HTTP2><Enable>true</Enable></HTTP2><LLHLS><Enable>true</Enable></LLHLS>
    <P2P><Enable>false</Enable><MaxClientPeersPerHostPeer>2</MaxClientPeersPerHostPeer></P2P>
    <Recovery><Enable>false</Enable><DeleteLazyStreamTimeout>0</DeleteLazyStreamTimeout></Recovery>
    <DynamicAppRemoval><Enable>false</Enable></DynamicAppRemoval><ETag><Enable>false</Enable></ETag>
    <ERTMP><Enable>true</Enable></ERTMP>
    <Whisper><PreloadModel><Path>model.bin</Path><Devices>0</Devices></PreloadModel></Whisper>
    <Jemalloc><BackgroundPurge>true</BackgroundPurge></Jemalloc>
    <TaskPool><ThreadCount>4</ThreadCount><MaxTasks>128</MaxTasks></TaskPool>
  </Modules>
  <Bind>
    <Managers><API><Port>8081</Port><WorkerCount>1</WorkerCount></API></Managers>
    <Providers>
      <RTSPC><WorkerCount>1</WorkerCount></RTSPC>
      <OVT><Port>9000</Port><WorkerCount>1</WorkerCount></OVT>
      <RTMP><Port>1935</Port><WorkerCount>1</WorkerCount><ThreadPerSocket>false</ThreadPerSocket></RTMP>
      <RTSP><Port>554</Port><WorkerCount>1</WorkerCount></RTSP>
      <SRT><Port>9999</Port><WorkerCount>1</WorkerCount>
        <StreamMap><Stream><Port>9999</Port><StreamPath>default/app/stream</StreamPath></Stream></StreamMap>
        <Options><Option><Key>SRTO_PASSPHRASE</Key><Value>at least ten</Value></Option></Options></SRT>
      <MPEGTS><Port>4000-4003,4004,4005/udp</Port><WorkerCount>1</WorkerCount></MPEGTS>
      <WebRTC>${SIGNALLING}${ICE}</WebRTC>
    </Providers>
    <Publishers>
      <OVT><Port>9000</Port><WorkerCount>1</WorkerCount></OVT>
      <LLHLS>${HTTP}</LLHLS><HLS>${HTTP}</HLS><Thumbnail>${HTTP}</Thumbnail>
      <WebRTC>${SIGNALLING}${OLD_ICE}</WebRTC><SRT><Port>9998</Port><WorkerCount>1</WorkerCount></SRT>
    </Publishers>
  </Bind>
  <Managers>
    <Host><Names><Name>*</Name></Names></Host>
    <API><AccessToken>ome-access-token</AccessToken>${CROSS_DOMAINS}
      <Storage><Enabled>true</Enabled><Path>conf/api_data</Path></Storage></API>
  </Managers>
  <Alert>
    <Url>http://192.0.2.1/alert</Url><SecretKey>secret</SecretKey><Timeout>3000</Timeout><RulesFile>rules.xml</RulesFile>
    <Rules><Ingress>${RANGE('Bitrate')}${RANGE('Framerate')}${RANGE('Width')}${RANGE('Height')}${RANGE('Samplerate')}
      <LongKeyFrameInterval>true</LongKeyFrameInterval><HasBFrames>true</HasBFrames></Ingress></Rules>
  </Alert>
  <Defaults>${CROSS_DOMAINS}</Defaults>
  <VirtualHosts>
    <VirtualHost include="VHost*.xml" />
    <VirtualHost>
      <Name>default</Name><Distribution>ovenmediaengine.com</Distribution>
      <Host><Names><Name>*</Name></Names></Host>
      <SignedPolicy><PolicyQueryKeyName>policy</PolicyQueryKeyName><SignatureQueryKeyName>signature</SignatureQueryKeyName>
        <SecretKey>k</SecretKey><Enables><Providers>rtmp</Providers><Publishers>webrtc</Publishers></Enables></SignedPolicy>
      <AdmissionWebhooks><ControlServerUrl>http://192.0.2.1/</ControlServerUrl><SecretKey>k</SecretKey><Timeout>3000</Timeout>
        <Enables><Providers>rtmp</Providers><Publishers>webrtc</Publishers></Enables></AdmissionWebhooks>
      <Origins>
        <Properties><NoInputFailoverTimeout>3000</NoInputFailoverTimeout>
          <UnusedStreamDeletionTimeout>60000</UnusedStreamDeletionTimeout>
          <StreamFailbackTimeout>3000</StreamFailbackTimeout><RetryCount>0</RetryCount></Properties>
        <Origin><Location>/app/stream</Location><Pass><Scheme>ovt</Scheme><Urls><Url>origin.com:9000/app/stream</Url></Urls>
          <ForwardQueryParams>false</ForwardQueryParams></Pass><Persistent>false</Persistent><Failback>false</Failback>
          <StrictLocation>false</StrictLocation><Relay>true</Relay>
          <IgnoreRtcpSRTimestamp>false</IgnoreRtcpSRTimestamp></Origin>
      </Origins>
      <OriginMapStore><RedisServer><Host>192.0.2.1:6379</Host><Auth>!@#ovenmediaengine</Auth></RedisServer>
        <OriginHostName>ome-dev.airensoft.com</OriginHostName></OriginMapStore>
      <Applications>
        <Application>
          <Name>app</Name><Type>live</Type>
          <TranscodeWebhook><Enable>false</Enable><ControlServerUrl>http://192.0.2.1/</ControlServerUrl>
            <SecretKey>abc123!</SecretKey><Timeout>1500</Timeout>
            <UseLocalProfilesOnConnectionFailure>true</UseLocalProfilesOnConnectionFailure>
            <UseLocalProfilesOnServerDisallow>false</UseLocalProfilesOnServerDisallow>
            <UseLocalProfilesOnErrorResponse>false</UseLocalProfilesOnErrorResponse></TranscodeWebhook>
          <EventGenerator><Enable>false</Enable><Path>events.xml</Path></EventGenerator>
          <Subtitles><Enable>false</Enable><DefaultLabel>Origin</DefaultLabel><Rendition><Label>Origin</Label>
            <Language>ko</Language><AutoSelect>true</AutoSelect><Forced>false</Forced></Rendition></Subtitles>
          <Providers>
            <RTMP>${INGEST}${SILENCE}<FirstMediaWaitTimeoutMs>0</FirstMediaWaitTimeoutMs>
              <BlockDuplicateStreamName>true</BlockDuplicateStreamName>
              <PassthroughOutputProfile>false</PassthroughOutputProfile>
              <EventGenerator><Event><Trigger>AMFDataMessage.onCue</Trigger><HLSID3v2><EventType>video</EventType>
                <FrameType>TXXX</FrameType><Info>i</Info><Data>d</Data></HLSID3v2></Event></EventGenerator></RTMP>
            <SRT>${INGEST}${SILENCE}<BlockDuplicateStreamName>true</BlockDuplicateStreamName>${AUDIO_MAP}</SRT>
            <MPEGTS>${INGEST}${SILENCE}<StreamMap><Stream><Name>stream_\${Port}</Name><Port>4000-4003/udp</Port></Stream>
              </StreamMap>${AUDIO_MAP}<PacketReordering>false</PacketReordering></MPEGTS>
            <RTSPPull>${INGEST}<BlockDuplicateStreamName>true</BlockDuplicateStreamName></RTSPPull>
            <RTSP>${INGEST}</RTSP><OVT>${INGEST}</OVT>
            <WebRTC>${INGEST}${SILENCE}<Timeout>30000</Timeout><FIRInterval>3000</FIRInterval>
              <RtcpBasedTimestamp>false</RtcpBasedTimestamp><Rtx><Enable>false</Enable><MaxHoldMs>400</MaxHoldMs></Rtx>
              ${CROSS_DOMAINS}</WebRTC>
            <Schedule>${INGEST}<MediaRootDir>/m</MediaRootDir><ScheduleFilesDir>/s</ScheduleFilesDir></Schedule>
            <Multiplex>${INGEST}${SILENCE}<MuxFilesDir>/m</MuxFilesDir></Multiplex>
            <FILE>${INGEST}</FILE>
          </Providers>
          <OutputProfiles>
            <HWAccels><Decoder><Enable>false</Enable></Decoder></HWAccels>
            <Decodes><ThreadCount>2</ThreadCount><OnlyKeyframes>false</OnlyKeyframes></Decodes>
            <MediaOptions><Overlays><Enable>false</Enable><Path>o.xml</Path></Overlays>
              <STT><Enable>false</Enable><Rendition><Engine>whisper</Engine><OutputSubtitleLabel>Korean</OutputSubtitleLabel>
              <Model>m</Model><InputAudioIndex>0</InputAudioIndex><SourceLanguage>auto</SourceLanguage>
              <Translation>false</Translation><StepMs>2000</StepMs><LengthMs>10000</LengthMs><KeepMs>1500</KeepMs>
              <Modules>nv:0</Modules></Rendition></STT></MediaOptions>
            <OutputProfile>
              <Name>default</Name><OutputStreamName>\${OriginStreamName}</OutputStreamName>
              <Playlist><Name>adaptive</Name><FileName>abr</FileName>
                <Options><WebRtcAutoAbr>true</WebRtcAutoAbr><HLSChunklistPathDepth>0</HLSChunklistPathDepth>
                  <EnableTsPackaging>true</EnableTsPackaging><EnableSubtitles>false</EnableSubtitles></Options>
                <Rendition><Name>720p</Name><Video>video</Video><Audio>audio</Audio><VideoIndexHint>-1</VideoIndexHint>
                  <AudioIndexHint>-1</AudioIndexHint></Rendition>
                <RenditionTemplate><Name>hls_\${Height}p</Name>
                  <VideoTemplate><VariantName>video</VariantName><EncodingType>all</EncodingType>${RANGE('Width')}
                    ${RANGE('Height')}${RANGE('Framerate')}${RANGE('Bitrate')}</VideoTemplate>
                  <AudioTemplate><VariantName>audio</VariantName><EncodingType>all</EncodingType>${RANGE('Bitrate')}
                    ${RANGE('Samplerate')}${RANGE('Channel')}</AudioTemplate></RenditionTemplate></Playlist>
              <TrackSet><Name>set</Name><Strict>false</Strict><Video><Name>video</Name><IndexHint>0</IndexHint></Video>
                <Audio><Name>audio</Name><IndexHint>0</IndexHint></Audio></TrackSet>
              <Encodes>
                <Video><Name>video</Name><Codec>h264</Codec><Bitrate>2M</Bitrate><Width>1280</Width><Height>720</Height>
                  <Framerate>30</Framerate><SkipFrames>0</SkipFrames><Preset>faster</Preset><ThreadCount>4</ThreadCount>
                  <KeyFrameIntervalType>frame</KeyFrameIntervalType><KeyFrameInterval>30</KeyFrameInterval>
                  <BFrames>0</BFrames><Profile>baseline</Profile><Lookahead>5</Lookahead><Modules>x264</Modules>
                  <ExtraOptions>bframes=0</ExtraOptions>
                  <BypassIfMatch><Codec>eq</Codec><Framerate>lte</Framerate><Width>lte</Width><Height>lte</Height>
                    <SAR>eq</SAR></BypassIfMatch></Video>
                <Audio><Name>audio</Name><Codec>aac</Codec><Bitrate>128000</Bitrate><Samplerate>48000</Samplerate>
                  <Channel>2</Channel><Modules>fdkaac</Modules>
                  <BypassIfMatch><Codec>eq</Codec><Samplerate>lte</Samplerate><Channel>eq</Channel></BypassIfMatch></Audio>
                <Image><Name>thumb</Name><Codec>jpeg</Codec><Framerate>1</Framerate><Width>320</Width><Height>180</Height>
                  <SkipFrames>0</SkipFrames></Image>
                <Data><Name>data</Name></Data>
              </Encodes>
            </OutputProfile>
          </OutputProfiles>
          <Publishers>
            ${EGRESS}
            <WebRTC>${EGRESS}<Timeout>30000</Timeout><Rtx>false</Rtx><Ulpfec>false</Ulpfec><JitterBuffer>false</JitterBuffer>
              <CreateDefaultPlaylist>true</CreateDefaultPlaylist><BandwidthEstimation>TransportCC</BandwidthEstimation>
              <PlayoutDelay><Min>0</Min><Max>100</Max></PlayoutDelay></WebRTC>
            <HLS>${HLS}</HLS>
            <LLHLS>${HLS}<ChunkDuration>0.5</ChunkDuration><PartHoldBack>1.5</PartHoldBack>
              <EnablePreloadHint>true</EnablePreloadHint><DRM><Enable>false</Enable><InfoFile>d.xml</InfoFile></DRM></LLHLS>
            <FILE>${EGRESS}<RootPath>/r</RootPath><FilePath>/f</FilePath><InfoPath>/i</InfoPath>${STREAM_MAP}</FILE>
            <Push>${EGRESS}${STREAM_MAP}<ConnectionTimeout>5000</ConnectionTimeout><SendTimeout>2000</SendTimeout></Push>
            <Thumbnail>${EGRESS}${CROSS_DOMAINS}</Thumbnail>
            <SRT>${EGRESS}</SRT><OVT>${EGRESS}</OVT>
          </Publishers>
        </Application>
      </Applications>
    </VirtualHost>
  </VirtualHosts>
</Server>`;

test('all elements of a stock configuration of OvenMediaEngine are known', async (t) => {
  const { config, warnings } = await load(t, EVERYTHING);
  t.deepEqual(
    warnings.filter((line) => line.includes('unknown')),
    [],
  );
  t.is(config.bind.publishers.ovt?.port, 9000);
});

test('streams are pulled without a port: one for them is taken, and nothing listens on it', async (t) => {
  for (const name of ['OVT', 'RTSPC']) {
    for (const inside of ['', '<WorkerCount>1</WorkerCount>', '<Port>9000</Port>', '<Port>9001/tcp</Port>']) {
      const element = `<${name}>${inside}</${name}>`;
      const { config, warnings, notes } = await load(
        t,
        EVERYTHING.replace(new RegExp(`<${name}>.*</${name}>`), element).replace(
          /<RTMP><Port>1935/,
          '<RTMP><Port>9001',
        ),
      );
      t.deepEqual(
        warnings.filter((line) => line.includes(`/${name}`)),
        [],
        element,
      );
      t.true(notes.join().includes(`Bind/Providers/${name}`), 'it is told of in debug');
      t.false('ovt' in config.bind.providers || 'rtspc' in config.bind.providers);
    }
  }
});
