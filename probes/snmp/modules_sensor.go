package snmp

import "slices"

// entityModule is ENTITY-SENSOR-MIB (RFC 3433), whose sensors are named by ENTITY-MIB
// (RFC 6933). The entPhySensor series have the device's raw values; see deriveEntitySensors
// for values in units.
var entityModule = module{
	walk: []string{entitySensorEntry, entPhysicalDescr, entPhysicalName},
	metrics: table(entitySensorEntry, []index{{labelname: "entPhysicalIndex", typ: typeGauge}},
		[]lookup{
			{labels: []string{"entPhysicalIndex"}, labelname: "entPhysicalDescr", oid: entPhysicalDescr, typ: typeDisplayString},
			{labels: []string{"entPhysicalIndex"}, labelname: "entPhysicalName", oid: entPhysicalName, typ: typeDisplayString},
		},
		column{"1", "entPhySensorType", typeGauge, "Unit: 3 volts AC, 4 volts DC, 5 amperes, 6 watts, 7 hertz, 8 °C, 9 % humidity, 10 rpm, 11 m³ per minute, 12 truth value."},
		column{"2", "entPhySensorScale", typeGauge, "Power of 1000 that the unit is multiplied by, plus 9."},
		column{"3", "entPhySensorPrecision", typeGauge, "Decimal places in the value, if positive."},
		column{"4", "entPhySensorValue", typeGauge, "The reading as an integer, before scale and precision."},
		column{"5", "entPhySensorOperStatus", typeGauge, "State of the sensor: 1 ok, 2 unavailable, 3 not operational."},
	),
	derive: deriveEntitySensors,
}

const (
	entitySensorEntry = "1.3.6.1.2.1.99.1.1.1"
	entPhysicalDescr  = "1.3.6.1.2.1.47.1.1.1.1.2"
	entPhysicalName   = "1.3.6.1.2.1.47.1.1.1.1.7"
)

// lmSensorsModule is LM-SENSORS-MIB of Net-SNMP (UCD enterprise 2021). The MIB declares
// every value a Gauge32; temperatures and voltages below zero arrive as large numbers
// and are read as signed.
var lmSensorsModule = module{
	walk: []string{lmTemp, lmFan, lmVolt, lmMisc},
	metrics: slices.Concat(
		lmTable(lmTemp, "lmTempSensors", typeInteger32, "Temperature in thousandths of a degree Celsius."),
		lmTable(lmFan, "lmFanSensors", typeGauge, "Fan speed in revolutions per minute."),
		lmTable(lmVolt, "lmVoltSensors", typeInteger32, "Voltage in millivolts."),
		lmTable(lmMisc, "lmMiscSensors", typeGauge, "A reading of another kind."),
	),
	derive: deriveLMSensors,
}

const (
	lmTemp = "1.3.6.1.4.1.2021.13.16.2.1"
	lmFan  = "1.3.6.1.4.1.2021.13.16.3.1"
	lmVolt = "1.3.6.1.4.1.2021.13.16.4.1"
	lmMisc = "1.3.6.1.4.1.2021.13.16.5.1"
)

func lmTable(entry, prefix string, t metricType, help string) []metric {
	return table(entry, []index{{labelname: prefix + "Index", typ: typeGauge}},
		[]lookup{{labels: []string{prefix + "Index"}, labelname: prefix + "Device", oid: entry + ".2", typ: typeDisplayString}},
		column{"3", prefix + "Value", t, help})
}
