; The Windows installer, made with Inno Setup 6 from the packaged folder:
;   iscc /DVersion=0.1.0 /DFolder=C:\out\dualscope /DIcon=C:\out\build\icons\dualscope.ico dualscope.iss
; For one user, without administrator's rights; it takes out again all that it put in.

#ifndef Version
  #error Name the version: /DVersion=0.1.0
#endif
#ifndef Folder
  #error Name the packaged folder: /DFolder=C:\out\dualscope
#endif
#ifndef Icon
  #error Name the icon: /DIcon=C:\out\build\icons\dualscope.ico
#endif

[Setup]
AppId={{6E0B2C0A-5C7F-4C57-9B0D-3E1F6B1D9A42}
AppName=Dualscope
AppVersion={#Version}
AppPublisher=The Dualscope authors
DefaultDirName={autopf}\Dualscope
DefaultGroupName=Dualscope
DisableProgramGroupPage=yes
PrivilegesRequired=lowest
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
MinVersion=10.0
LicenseFile=..\..\..\LICENSE
SetupIconFile={#Icon}
UninstallDisplayIcon={app}\dualscopew.exe
OutputDir={#Folder}\..
OutputBaseFilename=dualscope-{#Version}-setup
Compression=lzma2
SolidCompression=yes
ChangesAssociations=yes
WizardStyle=modern

[Tasks]
Name: dicom; Description: "Offer Dualscope for DICOM images (.dcm)"
Name: desktop; Description: "{cm:CreateDesktopIcon}"; Flags: unchecked

[Files]
Source: "{#Folder}\*"; DestDir: "{app}"; Flags: recursesubdirs createallsubdirs ignoreversion

[InstallDelete]
; an older version's libraries must not mix with the new ones
Type: filesandordirs; Name: "{app}\_internal"

[Icons]
Name: "{group}\Dualscope"; Filename: "{app}\dualscopew.exe"; Parameters: "gui"
Name: "{group}\Licences"; Filename: "{app}\licences"
Name: "{group}\Uninstall Dualscope"; Filename: "{uninstallexe}"
Name: "{autodesktop}\Dualscope"; Filename: "{app}\dualscopew.exe"; Parameters: "gui"; Tasks: desktop

[Registry]
; workspaces are ours
Root: HKA; Subkey: "Software\Classes\.dualscope"; ValueType: string; ValueData: "Dualscope.Workspace"; Flags: uninsdeletevalue
Root: HKA; Subkey: "Software\Classes\Dualscope.Workspace"; ValueType: string; ValueData: "Dualscope workspace"; Flags: uninsdeletekey
Root: HKA; Subkey: "Software\Classes\Dualscope.Workspace\DefaultIcon"; ValueType: string; ValueData: "{app}\dualscopew.exe,0"
Root: HKA; Subkey: "Software\Classes\Dualscope.Workspace\shell\open\command"; ValueType: string; ValueData: """{app}\dualscopew.exe"" gui ""%1"""
; DICOM images belong to whoever the person chose: we only stand in the list
Root: HKA; Subkey: "Software\Classes\Dualscope.Dicom"; ValueType: string; ValueData: "DICOM image"; Flags: uninsdeletekey; Tasks: dicom
Root: HKA; Subkey: "Software\Classes\Dualscope.Dicom\shell\open\command"; ValueType: string; ValueData: """{app}\dualscopew.exe"" gui ""%1"""; Tasks: dicom
Root: HKA; Subkey: "Software\Classes\.dcm\OpenWithProgids"; ValueType: string; ValueName: "Dualscope.Dicom"; ValueData: ""; Flags: uninsdeletevalue; Tasks: dicom

[Run]
Filename: "{app}\dualscopew.exe"; Parameters: "gui --demo ct"; Description: "Open Dualscope on the demo"; Flags: postinstall nowait skipifsilent
